"""What the keys have used, today and this month, and what is not written to a store yet.

An exchange that ends adds to numbers in memory. Who writes them takes the rows from time to time, and gives sums back:
other processes may write to the same store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from .record import ExchangeRecord
from .usage_rows import KeyDay, UsageRow, merge_usage

__all__ = ["KeyUsage", "UsageLedger"]

_MOST_ROWS = 10_000  # of one day in this process; clients can choose names of models
_OTHER = "other"


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
    """What one key used today of one model and target, since the last time that it was written."""

    __slots__ = ("cached", "cost", "given", "made", "requests")

    def __init__(self) -> None:
        self.requests = self.given = self.made = self.cached = 0
        self.cost = 0.0


class UsageLedger:
    """Counts the exchanges of one proxy. `clock` returns seconds since 1970; days and months are those of UTC."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._pending: dict[tuple[str, str, str], _Tally] = {}
        self._late: list[UsageRow] = []
        self._names: set[tuple[str, str, str]] = set()
        self._keys: dict[str, KeyUsage] = {}
        self._day = self.month_start = ""
        self._begin_day()

    def find(self, key: str) -> KeyUsage:
        """What a key has used today and this month."""
        if not self._midnight <= self._clock() < self.tomorrow:
            self._begin_day()
        usage = self._keys.get(key)
        if usage is None:
            usage = self._keys[key] = KeyUsage()
        return usage

    def count(self, record: ExchangeRecord) -> None:
        """Count an exchange that has ended, unless no target was found for it."""
        if record.target is None:
            return
        key, tokens, cost = record.key or "", record.tokens, record.cost or 0.0
        given, made, cached = tokens.input or 0, tokens.output or 0, tokens.cached or 0
        self.find(key).add(given + made, cost)
        names = (key, record.model or "", record.target)
        if names not in self._names:
            if len(self._names) >= _MOST_ROWS:
                names = (key, _OTHER, _OTHER)
            self._names.add(names)
        tally = self._pending.get(names)
        if tally is None:
            tally = self._pending[names] = _Tally()
        tally.requests += 1
        tally.given += given
        tally.made += made
        tally.cached += cached
        tally.cost += cost

    def take_rows(self) -> list[UsageRow]:
        """What was counted since the last time; it belongs to the caller."""
        rows = self._list_rows()
        self._pending, self._late = {}, []
        return rows

    def return_rows(self, rows: Iterable[UsageRow]) -> None:
        """Take back what the caller could not write."""
        merged: dict[tuple[str, ...], UsageRow] = {}
        for row in (*rows, *self._late):
            known = merged.get(row[:4])
            merged[row[:4]] = row if known is None else merge_usage(known, row)
        self._late = list(merged.values())

    def set_sums(self, stored: Iterable[KeyDay]) -> None:
        """Begin with these sums of the month, to which what is not written yet is added."""
        self._keys = {}
        more = [KeyDay(row.day, row.key, row.input_tokens + row.output_tokens, row.cost) for row in self._list_rows()]
        for day, key, tokens, cost in (*stored, *more):
            if day >= self.month_start:
                self.find(key).add(tokens, cost, is_today=day == self._day)

    def _list_rows(self) -> list[UsageRow]:
        rows = [
            UsageRow(self._day, *names, tally.requests, tally.given, tally.made, tally.cached, tally.cost)
            for names, tally in self._pending.items()
        ]
        return [*self._late, *rows]

    def _begin_day(self) -> None:
        """Set the sums to zero at the turn of a day or a month."""
        self._late = self._list_rows()
        month, now = self.month_start, datetime.fromtimestamp(self._clock(), UTC)
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self._day, self.month_start = f"{now:%Y-%m-%d}", f"{now:%Y-%m-01}"
        self._midnight, self.tomorrow = start.timestamp(), (start + timedelta(days=1)).timestamp()
        self.next_month = (start.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()
        self._pending, self._names = {}, set()
        for usage in self._keys.values():
            usage.day_tokens, usage.day_cost = 0, 0.0
            if month != self.month_start:
                usage.month_tokens, usage.month_cost = 0, 0.0
