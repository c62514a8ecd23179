"""Mutated raw requests against a running proxy."""

from __future__ import annotations

import pytest

from tools.fuzz.raw import draw_raw, fuzz_raw


def test_a_seed_and_a_number_make_a_case() -> None:
    cases = [draw_raw("a", number) for number in range(200)]
    assert cases == [draw_raw("a", number) for number in range(200)]
    assert len(set(cases)) == 200
    assert cases != [draw_raw("b", number) for number in range(200)]


@pytest.mark.parametrize("count", [400, pytest.param(15_000, marks=pytest.mark.heavy)])
async def test_no_bytes_cause_a_failure_of_the_proxy(count: int) -> None:
    report = await fuzz_raw("tests", range(count))
    assert report.findings == {}
    assert report.tracebacks == []
    assert report.cases == count
    assert report.statuses[200] >= count / 20
    assert report.statuses[400] >= count / 20
