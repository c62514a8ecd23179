"""The response cache: cases with the same request share its response."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.contract.exchange import Response, UnreachableError
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.response_cache import list_unsent_requests, request_key

from .scripted import SECOND_STEP, TARGET, ScriptedTransport, make_response, run_cases, write_case


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_cases_with_equal_requests_share_a_response_and_its_cost(tmp_path: Path, concurrency: int) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    cases.append(write_case(tmp_path, "four", body="user: other"))
    transport = ScriptedTransport(make_response(id="x"))
    results = await run_cases(transport, cases, budget=20, concurrency=concurrency)
    assert [result.verdict for result in results] == ["pass"] * 4
    assert (len(transport.requests), sum(result.tokens for result in results)) == (2, 20)
    known = [request_key(request) for request in transport.requests]
    assert [len(list_unsent_requests(case, TARGET, known)) for case in cases] == [0, 0, 0, 0]
    assert [len(list_unsent_requests(case, TARGET, ())) for case in cases] == [1, 1, 1, 1]


async def test_case_that_sends_a_request_twice_gets_two_responses(tmp_path: Path) -> None:
    cases = [write_case(tmp_path), write_case(tmp_path, "two", end=SECOND_STEP)]
    transport = ScriptedTransport(make_response(id="x"))
    await run_cases(transport, cases)
    assert len(transport.requests) == 2
    assert len(list_unsent_requests(cases[1], TARGET, ())) == 2


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("first", [make_response(429), make_response(500), UnreachableError("no")])
async def test_transient_response_is_not_shared(
    tmp_path: Path, first: Response | UnreachableError, concurrency: int
) -> None:
    cases = [write_case(tmp_path, name) for name in ("one", "two", "three")]
    results = await run_cases(ScriptedTransport(first, make_response()), cases, concurrency=concurrency)
    assert [result.verdict == "pass" for result in results] == [False, True, True]


async def test_driven_cases_share_no_response(tmp_path: Path) -> None:
    cases = [write_case(tmp_path), write_case(tmp_path, "two")]
    transport = ScriptedTransport(make_response())
    async with FakeUpstream("openai") as fake:
        results = await run_cases(transport, cases, upstream=fake)
    assert len(transport.requests) == 2
    assert all(step.upstream is not None for result in results for step in result.steps)
