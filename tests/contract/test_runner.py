"""The case runner: verdicts, retries, and the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.contract.exchange import UnreachableError

from .scripted import ScriptedTransport, make_response, run_cases, write_case


@pytest.mark.parametrize(
    ("level", "expect", "verdict"),
    [
        ("MUST", "checks: [{present: [id]}]", "pass"),
        ("MUST", "checks: [{present: [gone]}]", "fail"),
        ("SHOULD", "checks: [{present: [gone]}]", "warn"),
        ("MUST", "should: [{present: [gone]}]", "warn"),
        ("MUST", "cooperation: [{present: [gone]}], checks: [{present: [gone]}]", "inconclusive"),
    ],
)
async def test_level_decides_the_verdict(tmp_path: Path, level: str, expect: str, verdict: str) -> None:
    (result,) = await run_cases(
        ScriptedTransport(make_response(id="x")), [write_case(tmp_path, level=level, expect=expect)]
    )
    assert result.verdict == verdict
    assert ("gone" in result.reason) == (verdict != "pass")


async def test_uncooperative_model_is_asked_again(tmp_path: Path) -> None:
    one = write_case(tmp_path, expect="cooperation: [{present: [id]}]")
    transport = ScriptedTransport(make_response(), make_response(id="x"))
    (result,) = await run_cases(transport, [one])
    assert (result.verdict, result.attempts, len(transport.requests)) == ("pass", 2, 2)


async def test_number_of_checks_is_fixed(tmp_path: Path) -> None:
    one = write_case(tmp_path, expect="schema: reply, checks: [has_text, usage_adds_up]")
    (good,) = await run_cases(ScriptedTransport(make_response()), [one])
    (bad,) = await run_cases(ScriptedTransport(make_response(500)), [one])
    (none,) = await run_cases(ScriptedTransport(UnreachableError("no")), [one])
    assert len(good.checks) == len(bad.checks) == len(none.checks) == 5
    assert [check.state for check in bad.checks] == ["broken", *["unreached"] * 4]
    assert (bad.verdict, none.verdict) == ("fail", "error")


async def test_first_401_ends_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    transport = ScriptedTransport(make_response(401))
    results = await run_cases(transport, cases)
    assert [result.verdict for result in results] == ["fail", "skip", "skip"]
    assert "is the key right?" in results[1].reason
    assert len(transport.requests) == 1


async def test_unreachable_endpoint_ends_the_run(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    transport = ScriptedTransport(UnreachableError("refused"))
    assert [result.verdict for result in await run_cases(transport, cases)] == ["error", "error", "skip"]


async def test_unserved_protocol_is_skipped(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, "one"), write_case(tmp_path, "two", more="probe: true")]
    transport = ScriptedTransport(make_response(404))
    results = await run_cases(transport, cases)
    assert [result.verdict for result in results] == ["skip", "skip"]
    assert len(transport.requests) == 1


async def test_run_stays_within_the_budget(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name, body=f"user: {name}") for name in ("one", "two", "three")]
    results = await run_cases(ScriptedTransport(make_response()), cases, budget=25)
    assert [result.verdict for result in results] == ["pass", "pass", "skip"]


async def test_concurrent_run_keeps_the_order_of_results(tmp_path: Path) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    results = await run_cases(ScriptedTransport(make_response()), cases, concurrency=3)
    assert [result.case.id for result in results] == [one.id for one in cases]


async def test_request_has_the_address_and_key_of_the_target(tmp_path: Path) -> None:
    transport = ScriptedTransport(make_response())
    await run_cases(transport, [write_case(tmp_path)])
    (request,) = transport.requests
    assert (request.method, request.url) == ("POST", "http://x/v1/chat/completions")
    assert request.headers == {"Content-Type": "application/json", "Authorization": "Bearer secret"}
    assert json.loads(request.body) == {"model": "m", "messages": []}
