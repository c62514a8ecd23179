"""Causes: failures that differ only in positions and numbers are one group."""

from __future__ import annotations

import pytest

from dragoman.contract.causes import find_cause, group_by_cause


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (
            "schema event: event 3: choices[0]: 'id' is a required property; more",
            "schema event: choices[]: 'id' is a required property",
        ),
        ("status: 500, expected 400 or 422: Internal: Error 7", "status: 500, expected 400 or 422"),
        (
            "at_most: usage.completion_tokens is 31, expected at most 8",
            "at_most: usage.completion_tokens is N, expected at most 8",
        ),
    ],
)
def test_cause_leaves_out_positions_and_numbers(reason: str, cause: str) -> None:
    assert find_cause("fail", reason) == cause


@pytest.mark.parametrize("verdict", ["pass", "skip", "inconclusive"])
def test_other_verdicts_have_no_cause(verdict: str) -> None:
    assert find_cause(verdict, "whatever") == ""


def test_largest_group_comes_first() -> None:
    cases = [
        {"id": str(number), "verdict": "fail", "reason": reason}
        for number, reason in enumerate(["a: x", "b: event 1: y", "b: event 2: y"])
    ]
    assert [(group["cause"], group["cases"]) for group in group_by_cause(cases)] == [
        ("b: y", ["1", "2"]),
        ("a: x", ["0"]),
    ]
