"""Upstreams that fail in every way, for the clients of every protocol and dialect, whole and streamed: the exact status
and code, the error in the client's own form, and no failure that looks like a success."""

from __future__ import annotations

import asyncio

import pytest

from .faulty_upstream import Fault, load_faults, record_usual
from .matrix import Case, list_cases, open_matrix

FAULTS = load_faults()
SAMPLE = 12  # every twelfth case is in the default suite


def test_the_matrix_is_of_many_faults() -> None:
    assert len(FAULTS) >= 100
    assert len({fault.model for fault in FAULTS}) == len(FAULTS)
    assert len(list_cases(FAULTS)) >= 19 * len(FAULTS)


def falls_silent(fault: Fault) -> bool:
    return "hang" in fault.steps


async def check(cases: list[Case], subtests: pytest.Subtests) -> None:
    async with open_matrix({case.fault.name: case.fault for case in cases}.values(), await record_usual()) as matrix:
        results = await asyncio.gather(*(matrix.run(case) for case in cases), return_exceptions=True)
    for case, result in zip(cases, results, strict=True):
        with subtests.test(case=case.model):
            if isinstance(result, BaseException):
                raise result
            assert result == case.expected


@pytest.mark.parametrize("silent", [False, True])
async def test_a_sample_of_the_matrix(silent: bool, subtests: pytest.Subtests) -> None:
    cases = list_cases([fault for fault in FAULTS if falls_silent(fault) == silent])
    await check(cases[::SAMPLE], subtests)


@pytest.mark.heavy
@pytest.mark.parametrize("silent", [False, True])
async def test_the_whole_matrix(silent: bool, subtests: pytest.Subtests) -> None:
    await check(list_cases([fault for fault in FAULTS if falls_silent(fault) == silent]), subtests)
