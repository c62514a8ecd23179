"""Generated requests, replies and streams of every client and provider: what must hold for them, and that the fuzzer
sees it if it does not."""

from __future__ import annotations

from random import Random

import pytest
from typer.testing import CliRunner

from dragoman.adapters.call import Policy, Target
from tools.fuzz.__main__ import app
from tools.fuzz.pairs import Pair, list_pairs
from tools.fuzz.replies import ReplyCase, draw_reply, draw_stream
from tools.fuzz.requests import RequestCase, draw_request
from tools.fuzz.runner import Draw, run_cases, shrink

DRAWS = {"requests": draw_request, "replies": draw_reply, "streams": draw_stream}
COUNTS = {"requests": 5_000, "replies": 5_000, "streams": 5_000}
LARGER = [(kind, range(at, at + 2_500)) for kind, count in COUNTS.items() for at in range(0, count, 2_500)]
"""The beginning of the cases of this seed, in slices; `.ci/nightly codecs` checks more of others."""
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
PLAIN = Pair("openai", "actual", "chat", "openai", "actual", "chat")


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [*((kind, range(200)) for kind in DRAWS), *(pytest.param(*one, marks=pytest.mark.heavy) for one in LARGER)],
    ids=str,
)
def test_every_law_holds(kind: str, numbers: range) -> None:
    pairs = list_pairs(streamed=kind == "streams")
    report = run_cases(DRAWS[kind], pairs, "tests", numbers)
    found = [f"{finding.text} {again}\n{case.describe()}" for again, case, finding in report.findings.values()]
    assert not found, "\n\n".join(found)
    assert len(report.outcomes) > 1


@pytest.mark.parametrize("draw", DRAWS.values())
def test_a_seed_makes_the_same_cases(draw: Draw) -> None:
    first, again = (draw(Random("x"), PLAIN) for _ in range(2))
    assert first == again


def test_generated_requests_reach_providers() -> None:
    report = run_cases(draw_request, list_pairs(), "valid", range(300))
    assert report.outcomes["sent"] > 60


def test_a_finding_is_shrunk_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str, words: object) -> None:
        raise KeyError(text)

    monkeypatch.setattr("dragoman.adapters.chat.coherence._check_tool_results", lambda messages: fail("x", None))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 1, "x": {"deep": [1, 2]}}
    case = RequestCase(PLAIN, Target("m", policy=Policy("error")), body)
    (finding,) = case.check()
    assert (finding.law, finding.place[:8]) == ("only faults are raised", "KeyError")
    small, same = shrink(case, finding)
    assert isinstance(small, RequestCase)
    assert same.place == finding.place
    assert small.body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_a_defect_in_a_reader_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("dragoman.adapters.common.stream_reader.read_error_object", fail)
    error = b'data: {"error": {"message": "boom"}}\n\n'
    case = ReplyCase(PLAIN, Target("m"), ASKED, 200, (), (error,), 0)
    assert "a defect is reported" in [finding.law for finding in case.check()]


def test_the_command_prints_a_table() -> None:
    result = CliRunner().invoke(app, ["requests", "--count", "20", "--pairs", "mindie"])
    assert result.exit_code == 0, result.output
    assert "| Outcome of 20 cases" in result.output
    assert CliRunner().invoke(app, ["requests", "--pairs", "nowhere"]).exit_code == 2
    assert "openai:actual/chat>mindie:native/chat" in CliRunner().invoke(app, ["streams", "--list"]).output
