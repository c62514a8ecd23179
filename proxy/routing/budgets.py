"""Budgets of keys: how much they may use in a day and in a month of the calendar, in UTC."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.client_keys import Budget
from dragoman.proxy.telemetry.usage_ledger import UsageLedger

__all__ = ["BudgetState", "KeyBudget", "format_time"]

USED_UP = "insufficient_quota"
"""The code of refusals, OpenAI's for an account without credit: its clients do not try again."""

_SUMS = {
    "tokens_per_day": ("day_tokens", "tokens", "day"),
    "tokens_per_month": ("month_tokens", "tokens", "month"),
    "cost_per_day": ("day_cost", "cost", "day"),
    "cost_per_month": ("month_cost", "cost", "month"),
}


class BudgetState(NamedTuple):
    """One limit of a key's budget. `unit` is tokens or cost, `period` day or month; `reset` is when the next one
    begins, in seconds since 1970."""

    key: str
    unit: str
    period: str
    limit: float
    used: float
    reset: float


class KeyBudget:
    """The budget of one key."""

    def __init__(self, key: str, rules: Budget, ledger: UsageLedger, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._ledger = ledger
        self._clock = clock
        self._limits = [(limit, *_SUMS[name]) for name, limit in rules.list_values().items()]

    def check(self) -> None:
        """Raises Fault if the budget is used up."""
        used = self._ledger.find(self._key)
        for limit, attribute, _, _ in self._limits:
            if getattr(used, attribute) >= limit:
                raise self._refuse()

    def list_states(self) -> Iterator[BudgetState]:
        """Every limit, and what is used of it."""
        used = self._ledger.find(self._key)
        ends = {"day": self._ledger.tomorrow, "month": self._ledger.next_month}
        for limit, attribute, unit, period in self._limits:
            yield BudgetState(self._key, unit, period, limit, getattr(used, attribute), ends[period])

    def _refuse(self) -> Fault:
        """The refusal for the limit that lasts longest of those that are used up."""
        state = max((one for one in self.list_states() if one.used >= one.limit), key=lambda one: one.reset)
        what = f"{state.limit:,} tokens" if state.unit == "tokens" else f"cost of {state.limit:,}"
        until = format_time(state.reset)
        text = f"the key {self._key} has used up its {what} a {state.period}; the next {state.period} begins at {until}"
        wait = max(state.reset - self._clock(), 0.001)
        return Fault("rate_limit", text, code=USED_UP, retry_after=wait)


def format_time(seconds: float) -> str:
    """`2027-01-31 00:00:00 UTC`, from seconds since 1970."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
