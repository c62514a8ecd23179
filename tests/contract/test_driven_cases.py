"""Cases that drive a gateway, in front of one that has the defect that they are about, and of one that has not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.case_files import load_cases
from dragoman.contract.model import Case, Check
from dragoman.contract.runner import CaseRunner
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from dragoman.contract.verdicts import CaseResult

from .gateway import DEFECTS, Defect, gateway

CASES = {case.id: case for case in load_cases() if case.dialect == "openai"}
LEAVING = [f"{protocol}/proxy-sent/leaving" for protocol in ("chat", "responses")]


async def asked(case: Case, upstream: str, defect: Defect) -> CaseResult:
    async with FakeUpstream(upstream) as fake, gateway(fake, defect) as url:
        http = HttpTransport(10)
        try:
            return await CaseRunner(Target(url, "openai", "fake-model", upstream=upstream), http, fake).run_case(case)
        finally:
            await http.close()


@pytest.mark.parametrize(
    ("upstream", "id_", "defect", "verdict", "reason"),
    [
        ("openai", "chat/proxy-replies/usage-kept", "counts itself", "fail", "usage.prompt_tokens is 1"),
        ("openai", "chat/proxy-streams/usage-kept", "counts itself", "fail", "usage"),
        ("openai", "chat/proxy-streams/calls/ending-beside", "drops the last piece", "fail", "tool_args_json"),
        ("openai", "chat/proxy-streams/ending-apart", "none", "warn", "tool_calls beside the finish reason"),
        ("openai", "chat/proxy-errors/refused-parameter", "retries in silence", "warn", "200, expected 400"),
        ("databricks", "chat/proxy-sent/reply-sent-back", "keys of its own", "fail", "annotations"),
        ("databricks", "chat/proxy-sent/reasoning-sent-back", "thinking blocks", "fail", "thinking_blocks"),
        ("databricks", "chat/proxy-sent/reasoning-as-block", "forgets reasoning", "warn", "content[0].type"),
        ("databricks", "responses/proxy-sent/effort", "effort as an object", "fail", "reasoning_effort"),
        ("databricks", "responses/proxy-sent/effort-kept", "no effort", "fail", "reasoning_effort"),
        ("openai", "responses/proxy-sent/output-sent-back", "roles of its own", "fail", "400, expected 200"),
    ],
)
async def test_the_defect_is_found(upstream: str, id_: str, defect: str, verdict: str, reason: str) -> None:
    found = await asked(CASES[id_], upstream, DEFECTS[defect])
    assert (found.verdict, reason in found.reason) == (verdict, True), found.reason


@pytest.mark.parametrize(
    "id_",
    [
        "chat/proxy-replies/usage-kept",
        "chat/proxy-streams/calls/ending-beside",
        "chat/proxy-errors/refused-parameter",
        "chat/proxy-sent/reply-sent-back",
        "chat/proxy-sent/reasoning-sent-back",
        "responses/proxy-sent/output-sent-back",
        *(f"{leaving}/{when}" for leaving in LEAVING for when in ("whole", "before-stream", "stream")),
    ],
)
async def test_who_has_none_passes(id_: str) -> None:
    found = await asked(CASES[id_], "openai", DEFECTS["none"])
    assert (found.verdict, found.reason) == ("pass", "")


@pytest.mark.parametrize("leaving", LEAVING)
@pytest.mark.parametrize("when", ["whole", "before-stream", "stream"])
async def test_who_asks_on_for_nobody_is_found(leaving: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "_PATIENCE", 0.2)
    found = await asked(CASES[f"{leaving}/{when}"], "openai", DEFECTS["stubborn"])
    assert (found.verdict, "for a client that has left" in found.reason) == ("warn", True), found.reason


@pytest.mark.parametrize(("defect", "verdict"), [("none", "warn"), ("pings", "pass")])
async def test_silence_is_found(defect: str, verdict: str) -> None:
    """The case's own 35 seconds are too long for a test."""
    case = CASES["responses/proxy-streams/silence"]
    (step,) = case.steps
    assert step.drive is not None
    expect = replace(step.expect, checks=(*step.expect.checks[:-1], Check("silent_at_most", 0.6, "MAY")))
    quick = replace(step, drive=replace(step.drive, script=("pause(delay=1)",)), expect=expect)
    found = await asked(replace(case, steps=(quick,)), "openai", DEFECTS[defect])
    assert (found.verdict, "nothing came for" in found.reason) == (verdict, defect == "none"), found.reason
