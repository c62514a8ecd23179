"""What counts against a learned entry: a case that passes directly and fails through dragoman."""

from __future__ import annotations

from pathlib import Path

from dragoman.contract.learning.findings import Findings
from dragoman.contract.servers import FakeServers
from tools.real_servers.learned import LearnedServer, Report, learn_server


def test_only_a_case_that_passes_directly_is_a_new_failure() -> None:
    directly = Report({"a": "pass", "b": "fail", "c": "inconclusive", "d": "skip", "e": "warn"}, {"b": "b"})
    through = Report(dict.fromkeys("abcde", "fail"), dict.fromkeys("abcde", "why"))
    learned = LearnedServer(Findings(), "", directly, through)
    assert learned.new_failures == {"a": "why", "e": "why"}
    assert learned.unclear_failures == {"c": "why", "d": "why"}


def test_a_fake_is_learned_and_judged(tmp_path: Path) -> None:
    with FakeServers() as start:
        learned = learn_server(start("openai").origin, "fake-model", tmp_path, ["chat/text/*"])
    assert learned.new_failures == {}
    assert learned.through.verdicts["chat/text/plain"] == "pass"
    assert (tmp_path / "entry.yaml").read_text("utf-8") == learned.entry
