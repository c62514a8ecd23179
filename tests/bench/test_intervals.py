"""The interval of a median, and the verdict of the benchmark of the page's recording."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from _intervals import estimate_median
from _rows import Row
from inspection import WAYS, report, write_conclusion


def test_the_interval_has_the_median_in_95_of_100_cases() -> None:
    random = Random(7)
    for count in (6, 15, 21, 40):
        found = [estimate_median([random.lognormvariate(0, 1) for _ in range(count)]) for _ in range(2_000)]
        assert sum(one.low <= 1.0 <= one.high for one in found) / len(found) > 0.94, count


def test_few_values_decide_nothing() -> None:
    found = estimate_median([3.0, 1.0, 2.0])
    assert (found.median, found.judge(10.0), found.judge(0.1)) == (2.0, "undecided", "undecided")


def test_more_values_are_more_exact() -> None:
    assert estimate_median([float(value) for value in range(15)]) == (3.0, 7.0, 11.0)


@pytest.mark.parametrize(("bodies", "verdict"), [(1.05, "met"), (1.20, "missed")])
def test_the_verdict_is_that_of_the_rounds_ratios(bodies: float, verdict: str) -> None:
    """The machine is slower in each round; what it costs within a round is compared."""
    rows = {name: Row(name) for name in WAYS}
    for name, row in rows.items():
        factor = {"bodies": bodies, "watched": 1.0}.get(name, 1.0)
        row.results["whole"] = [_measure(100.0 * factor * (1 + at // 2)) for at in range(40)]
    verdicts = [*report(rows, "whole")]
    assert verdicts == ["whole, off: met", f"whole, bodies: {verdict}", "whole, watched: met"]
    expected = "all goals are met" if verdict == "met" else "goals not met: whole, bodies: missed"
    assert write_conclusion(verdicts) == expected


def test_what_scatters_around_the_goal_is_not_decided() -> None:
    assert estimate_median([1.0, 1.2] * 10).judge(1.1) == "undecided"


def _measure(cost: float) -> dict[str, Any]:
    return {"cpu_us": cost}
