"""The median of a few measurements, and how exact it is, whatever their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import comb, inf
from statistics import median
from typing import NamedTuple

__all__ = ["Interval", "estimate_median"]

_RISK = 0.05  # that the interval has not the true median


class Interval(NamedTuple):
    """The median of the values, and two of them that the true median is between with a probability of 95 %."""

    low: float
    median: float
    high: float

    def judge(self, most: float) -> str:
        """Whether the true median is at most this: `met`, `missed`, or `undecided`."""
        if self.high <= most:
            return "met"
        return "missed" if self.low > most else "undecided"


def estimate_median(values: Sequence[float]) -> Interval:
    """Each value is below the true median as often as above it, so the number of those below is that of heads in as
    many throws of a coin. Less than six values say nothing that is as sure as that."""
    ordered, count = sorted(values), len(values)
    chances = accumulate(comb(count, below) / 2**count for below in range(count))
    skipped = sum(chance <= _RISK / 2 for chance in chances)
    if not skipped:
        return Interval(-inf, median(ordered), inf)
    first = skipped - 1
    return Interval(ordered[first], median(ordered), ordered[count - 1 - first])
