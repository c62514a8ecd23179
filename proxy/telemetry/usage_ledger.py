"""What the keys have used, today and this month, and what is not written to a store yet.

An exchange that ends adds to numbers in memory. Who writes them takes the rows from time to time, and gives sums back:
other processes may write to the same store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from .record import ExchangeRecord
from .token_counts import TokenCounts
from .usage_rows import KeyDay, UsageRow, merge_usage

__all__ = ["KeyUsage", "UsageLedger"]

_MOST_ROWS = 10_000  # of one day in this process; clients can choose names of models
_OTHER = "other"

_Names: TypeAlias = tuple[str, str, str]
"""Key, model, target."""


class KeyUsage:
    """What a key has used so far: tokens of prompts and answers, and money."""

    __slots__ = ("day_cost", "day_tokens", "month_cost", "month_tokens")

    def __init__(self) -> None:
        self.day_tokens = self.month_tokens = 0
        self.day_cost = self.month_cost = 0.0

    def add(self, tokens: int, cost: float, *, is_today: bool = True) -> None:
        """Add to the sums."""
        self.month_tokens += tokens
        self.month_cost += cost
        if is_today:
            self.day_tokens += tokens
            self.day_cost += cost


class _Tally:
    """What one key used of one model and target since the last time that it was written."""

    __slots__ = ("attempts", "cached", "cost", "given", "made", "requests")

    def __init__(self) -> None:
        self.requests = self.attempts = self.given = self.made = self.cached = 0
        self.cost = 0.0

    def add(self, tokens: TokenCounts, cost: float | None, attempts: int) -> None:
        """Add one exchange."""
        given, made, cached = tokens
        self.requests += 1
        self.attempts += attempts
        self.given += given or 0
        self.made += made or 0
        self.cached += cached or 0
        self.cost += cost or 0.0


class UsageLedger:
    """Counts the exchanges of one proxy. `clock` returns seconds since 1970; days and months are those of UTC.

    Exchanges of a day that are taken when the next one has begun count for the earlier one: that is one second at most.
    `before_reading` counts those that have ended.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.before_reading: Callable[[], None] = lambda: None
        self._pending: dict[_Names, _Tally] = {}
        self._unwritten: list[UsageRow] = []
        self._names: set[_Names] = set()
        self._keys: dict[str, KeyUsage] = {}
        self._day = self.month_start = ""
        self._begin_day()

    def count(self, record: ExchangeRecord) -> None:
        """Count an exchange that has ended, unless no target was found for it."""
        if record.target is None:
            return
        names = (record.key or "", record.model or "", record.target)
        tally = self._pending.get(names)
        if tally is None:
            tally = self._create_tally(names)
        tally.add(record.tokens, record.cost, record.attempts)

    def find(self, key: str) -> KeyUsage:
        """What a key has used today and this month."""
        self._update()
        return self._keys.get(key) or KeyUsage()

    def take_rows(self) -> list[UsageRow]:
        """What was counted since the last time; it belongs to the caller."""
        self._update()
        rows, self._unwritten = self._unwritten, []
        return rows

    def return_rows(self, rows: Iterable[UsageRow]) -> None:
        """Take back what the caller could not write."""
        merged: dict[tuple[str, ...], UsageRow] = {}
        for row in (*rows, *self._unwritten):
            known = merged.get(row[:4])
            merged[row[:4]] = row if known is None else merge_usage(known, row)
        self._unwritten = list(merged.values())

    def set_sums(self, stored: Iterable[KeyDay]) -> None:
        """Begin with these sums of the month, to which what is not written yet is added."""
        self._update()
        self._keys = {}
        for day, key, tokens, cost in (*stored, *map(_sum_up, self._unwritten)):
            self._add(day, key, tokens, cost)

    def _create_tally(self, names: _Names) -> _Tally:
        if names not in self._names:
            if len(self._names) >= _MOST_ROWS:
                names = (names[0], _OTHER, _OTHER)
            self._names.add(names)
        return self._pending.setdefault(names, _Tally())

    def _update(self) -> None:
        """Add what was counted to the sums of the keys, and begin a new day if it is time."""
        self.before_reading()
        for names, tally in self._pending.items():
            tokens = (tally.given, tally.made, tally.cached)
            row = UsageRow(self._day, *names, tally.requests, *tokens, tally.cost, tally.attempts)
            self._unwritten.append(row)
            self._add(*_sum_up(row))
        self._pending = {}
        if not self._midnight <= self._clock() < self.tomorrow:
            self._begin_day()

    def _add(self, day: str, key: str, tokens: int, cost: float) -> None:
        if day >= self.month_start:
            self._keys.setdefault(key, KeyUsage()).add(tokens, cost, is_today=day == self._day)

    def _begin_day(self) -> None:
        """Set the sums to zero at the turn of a day or a month."""
        month, now = self.month_start, datetime.fromtimestamp(self._clock(), UTC)
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self._day, self.month_start = f"{now:%Y-%m-%d}", f"{now:%Y-%m-01}"
        self._midnight, self.tomorrow = start.timestamp(), (start + timedelta(days=1)).timestamp()
        self.next_month = (start.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()
        self._names = set()
        for usage in self._keys.values():
            usage.day_tokens, usage.day_cost = 0, 0.0
            if month != self.month_start:
                usage.month_tokens, usage.month_cost = 0, 0.0


def _sum_up(row: UsageRow) -> KeyDay:
    return KeyDay(row.day, row.key, row.input_tokens + row.output_tokens, row.cost)
