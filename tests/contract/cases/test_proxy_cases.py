"""Cases that drive a gateway detect its defects, and pass a gateway without defects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.exchange import Chunk, Request, Response
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.model import Case, UpstreamPlan
from dragoman.contract.runner import CaseRunner
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from dragoman.contract.verdicts import CaseResult

from .faulty_gateway import DEFECTS, Defect, run_gateway

CASES = {case.id: case for case in load_cases() if case.dialect == "openai"}
LEAVING = [f"{protocol}/proxy-sent/leaving" for protocol in ("chat", "responses")]


async def run_case(case: Case, upstream: str, defect: Defect) -> CaseResult:
    timeout = 0.2 if defect.ignores_disconnects else 20.0
    async with FakeUpstream(upstream, disconnect_timeout=timeout) as fake, run_gateway(fake, defect) as url:
        http = HttpTransport(10)
        try:
            return await CaseRunner(Target(url, "openai", "fake-model", upstream=upstream), http, fake).run_case(case)
        finally:
            await http.close()


@pytest.mark.parametrize(
    ("upstream", "id_", "defect", "verdict", "reason"),
    [
        ("openai", "chat/proxy-replies/usage-kept", "own token counts", "fail", "usage.prompt_tokens is 1"),
        ("openai", "chat/proxy-streams/usage-kept", "own token counts", "fail", "usage"),
        ("openai", "chat/proxy-streams/calls/ending-beside", "lost last delta", "fail", "tool_args_json"),
        (
            "openai",
            "chat/proxy-streams/ending-apart",
            "none",
            "warn",
            "tool_calls in the same chunk as the finish reason",
        ),
        ("openai", "chat/proxy-errors/refused-parameter", "silent retry", "warn", "200, expected 400"),
        ("databricks", "chat/proxy-sent/reply-sent-back", "additional key", "fail", "annotations"),
        ("databricks", "chat/proxy-sent/reasoning-sent-back", "thinking blocks", "fail", "thinking_blocks"),
        ("databricks", "chat/proxy-sent/reasoning-as-block", "lost reasoning", "warn", "content[0].type"),
        ("databricks", "responses/proxy-sent/effort", "effort as an object", "fail", "reasoning_effort"),
        ("databricks", "responses/proxy-sent/effort-kept", "lost effort", "fail", "reasoning_effort"),
        ("openai", "responses/proxy-sent/output-sent-back", "unknown roles", "fail", "400, expected 200"),
    ],
)
async def test_case_detects_the_defect(upstream: str, id_: str, defect: str, verdict: str, reason: str) -> None:
    found = await run_case(CASES[id_], upstream, DEFECTS[defect])
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
async def test_correct_gateway_passes(id_: str) -> None:
    found = await run_case(CASES[id_], "openai", DEFECTS["none"])
    assert (found.verdict, found.reason) == ("pass", "")


@pytest.mark.parametrize("leaving", LEAVING)
@pytest.mark.parametrize("when", ["whole", "before-stream", "stream"])
async def test_case_detects_an_ignored_disconnect(leaving: str, when: str) -> None:
    found = await run_case(CASES[f"{leaving}/{when}"], "openai", DEFECTS["ignored disconnect"])
    assert (found.verdict, "for a client that has left" in found.reason) == ("warn", True), found.reason


class RetimedTransport(HttpTransport):
    """A transport whose chunks arrive at fixed intervals, in seconds."""

    def __init__(self, interval: float) -> None:
        super().__init__(10)
        self._interval = interval

    async def send(self, request: Request) -> Response:
        response = await super().send(request)
        chunks = [Chunk(number * self._interval, chunk.data) for number, chunk in enumerate(response.chunks)]
        return replace(response, chunks=tuple(chunks))


@pytest.mark.parametrize(("interval", "verdict"), [(31.0, "warn"), (29.0, "pass")])
async def test_case_detects_a_silent_stream(interval: float, verdict: str) -> None:
    """The pause of the case is left out; the transport sets the times of the chunks."""
    case = CASES["responses/proxy-streams/silence"]
    quick = replace(case, steps=tuple(replace(step, upstream=UpstreamPlan(("slow(delay=0)",))) for step in case.steps))
    async with FakeUpstream("openai") as fake, run_gateway(fake, DEFECTS["none"]) as url:
        transport = RetimedTransport(interval)
        runner = CaseRunner(Target(url, "openai", "fake-model", upstream="openai"), transport, fake)
        result = await runner.run_case(quick)
        await transport.close()
    assert (result.verdict, "no bytes for 31.0 s" in result.reason) == (verdict, verdict == "warn"), result.reason
