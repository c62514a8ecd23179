"""The contract suite against a server: one run for each of its models, and only new failures count."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dragoman.contract.json_types import JsonObject
from dragoman.contract.known_gaps import read_known_gaps
from dragoman.contract.servers import FakeServers
from tools.real_servers import judgements, suite
from tools.real_servers.catalog import SERVERS, Server
from tools.real_servers.judgements import write_judgements
from tools.real_servers.processes import RunningServer
from tools.real_servers.suite import EXPECTED, list_runs, run_suite

FAKE = Server("fake", "A fake", ("pip==1",), (), {"chat": "fake-model"})


def test_each_model_is_asked_for_its_protocols_and_the_first_for_what_no_model_serves() -> None:
    (vllm,) = list_runs(SERVERS["vllm"])
    assert (vllm.name, vllm.model, vllm.protocols) == ("vllm", "mini", frozenset())
    found = {run.name: sorted(run.protocols) for run in list_runs(SERVERS["mlflow"])}
    assert found == {
        "mlflow-chat": ["chat", "count_tokens", "messages", "models", "responses"],
        "mlflow-completions": ["completions"],
        "mlflow-embeddings": ["embeddings"],
    }


def test_known_failures_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "EXPECTED", tmp_path)
    with FakeServers() as start:
        url = urlsplit(start("openai", behaviour="no-choices").base_url)
        running = RunningServer(FAKE, url.port or 0, tmp_path / "log", (url.netloc,))
        assert run_suite(running, tmp_path, ["chat/text/plain", "models/*"]) == 1
        (tmp_path / "fake.yaml").write_text("chat/text/plain: it has no choices", "utf-8")
        assert run_suite(running, tmp_path, ["chat/text/plain", "models/*"]) == 0
    report = json.loads((tmp_path / "fake.json").read_text("utf-8"))
    assert {case["id"]: case.get("expected") for case in report["cases"] if case["verdict"] == "fail"} == {
        "chat/text/plain": "it has no choices"
    }
    assert list((tmp_path / "fake").glob("*.json")), "the wire logs"


def test_every_file_of_known_failures_belongs_to_a_server() -> None:
    assert {file.stem for file in EXPECTED.glob("*")} == set(SERVERS)
    for file in EXPECTED.glob("*.yaml"):
        assert read_known_gaps(file)


def test_page_has_sums_and_causes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_case(id_: str, verdict: str, reason: str) -> JsonObject:
        return {"id": id_, "protocol": "chat", "verdict": verdict, "reason": reason, "cause": ""}

    monkeypatch.setattr(judgements, "EXPECTED", tmp_path)
    (tmp_path / "vllm.yaml").write_text("chat/a/*: it sends 1 | 2", "utf-8")
    cases = [
        make_case("chat/a/one", "fail", "x: 1"),
        make_case("chat/a/two", "fail", "x: 2"),
        make_case("chat/b/new", "fail", "x: 3"),
        make_case("chat/c/sure", "pass", ""),
        make_case("chat/c/unclear", "inconclusive", "y: 4"),
        make_case("chat/p/driven", "skip", "the case drives a proxy (--upstream)"),
        make_case("chat/p/unserved", "skip", "chat is not served: chat/text/plain got 404"),
    ]
    page = write_judgements({"vllm": [{"cases": cases, "profiles": {"actual": 2}}]}, {"vllm": "9.9"})
    assert "| vLLM, CPU build 9.9 | 1 | 0 | 3 | 1 | 1 | 0 | 2 |" in page
    assert "- **fails** it sends 1 \\| 2 · `chat/a/one`, `chat/a/two`\n- **fails** *new* x: 3 · `chat/b/new`" in page
    assert "- **inconclusive** y: 4 · `chat/c/unclear`\n- not served: chat" in page
