"""What was used, as rows: one for each day, key, model and target."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KeyDay", "UsageRow", "merge_usage"]


class UsageRow(NamedTuple):
    """What one key used on one day of one model by one target. `day` is a date in UTC, as `2027-01-31`; `key` is "" if
    no keys are configured. `input_tokens` include the cached ones. `attempts` are all tries of these
    requests: what those that failed, or were cancelled, have used is not known."""

    day: str
    key: str
    model: str
    target: str
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float
    attempts: int


class KeyDay(NamedTuple):
    """What one key used on one day."""

    day: str
    key: str
    tokens: int
    cost: float


def merge_usage(one: UsageRow, other: UsageRow) -> UsageRow:
    """The sum of two rows; day and names are those of the first."""
    return one._replace(
        requests=one.requests + other.requests,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost=one.cost + other.cost,
        attempts=one.attempts + other.attempts,
    )
