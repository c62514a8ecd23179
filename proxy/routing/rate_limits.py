"""Limits on requests, tokens and concurrency, for each key and each provider.

Requests and tokens a minute are counted by the generic cell rate algorithm: each unit moves a theoretical arrival time
by the time that it takes at the permitted rate, and a request is admitted as long as that time is not further ahead
than a whole burst. Nothing happens at the turn of a minute, and one number is all that is kept.

How many tokens a request costs is known at its end, so a request is admitted while any are left, and what it used is
counted afterwards, even if that is more than was left. Then the next ones wait longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from dragoman.adapters.faults import Fault
from dragoman.adapters.rate_headers import RateLeft, format_duration
from dragoman.proxy.config.traffic import RateLimits

__all__ = [
    "LIMITED_HERE",
    "Admission",
    "Limiter",
    "LocalCounters",
    "Rate",
    "RateCounters",
    "RateDecision",
]

LIMITED_HERE = "provider_rate_limit"
"""The code of faults of calls that were never made, because the configuration allows its provider no more."""

_MINUTE = 60.0
_EDGE = 1e-9  # of rounding


class Rate(NamedTuple):
    """So many units a minute, `burst` of them at once."""

    per_minute: int
    burst: int


class RateDecision(NamedTuple):
    """Whether units were taken, how many are left, after how many seconds all are there again, and after how many the
    refused ones would be."""

    is_allowed: bool
    remaining: int
    reset: float
    retry_after: float


class Admission(NamedTuple):
    """What a request finds of the limits that apply to it, and why it is refused; None if it is admitted."""

    left: tuple[RateLeft, ...]
    refusal: Fault | None


class RateCounters(Protocol):
    """Counts units by name. Processes that share their limits share what implements this: a counter of several machines
    may wait in `take`, and send what `add` gets later. One that cannot reach the others decides by itself; it raises
    nothing."""

    async def take(self, name: str, rate: Rate, amount: float) -> RateDecision:
        """Take units if there are so many. Taking 0 shows what is left."""

    def add(self, name: str, rate: Rate, amount: float) -> None:
        """Count units that were used already, or give back some that were not."""


class LocalCounters(RateCounters):
    """Counts in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._arrivals: dict[str, float] = {}

    async def take(self, name: str, rate: Rate, amount: float) -> RateDecision:
        """Take units if there are so many."""
        now, interval = self._clock(), _MINUTE / rate.per_minute
        arrival = max(self._arrivals.get(name, now), now)
        ahead = arrival + amount * interval - now
        most = rate.burst * interval
        is_allowed = ahead <= most + _EDGE
        if is_allowed:
            self._arrivals[name] = now + ahead
        used = ahead if is_allowed else arrival - now
        remaining = max(0, math.floor((most - used) / interval + _EDGE))
        return RateDecision(is_allowed, remaining, used, 0.0 if is_allowed else ahead - most)

    def add(self, name: str, rate: Rate, amount: float) -> None:
        """Count units that were used already, or give back some that were not."""
        now = self._clock()
        self._arrivals[name] = max(self._arrivals.get(name, now), now) + amount * _MINUTE / rate.per_minute


class _Running:
    """How many requests run."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Limiter:
    """Admits requests by the rules of one key or provider; `owner` names it in messages, and `code` the refusals. A
    request that was admitted has to be settled. Requests that `previous`, the limiter of an earlier configuration, has
    admitted count too."""

    def __init__(
        self,
        owner: str,
        rules: RateLimits,
        counters: RateCounters,
        code: str = "rate_limit_exceeded",
        previous: Limiter | None = None,
    ) -> None:
        self._owner = owner
        self._code = code
        self._counters = counters
        self._most = rules.concurrency
        self._running: _Running = _Running() if previous is None else previous._running
        self._rates = {
            unit: Rate(limit, min(rules.burst or limit, limit))
            for unit, limit in (("requests", rules.requests_per_minute), ("tokens", rules.tokens_per_minute))
            if limit is not None
        }

    async def admit(self, count: int = 1) -> Admission:
        """Admit so many requests at once, or refuse them. `settle` them if they are admitted."""
        if self._most is not None and self._running.count >= self._most:
            text = f"{self._owner} may have {self._most} requests at one time"
            return await self._refuse(Fault("rate_limit", text, code=self._code, retry_after=1.0))
        self._running.count += 1  # before anything is waited for
        admission = None
        try:
            admission = await self._take(count)
        finally:
            if admission is None or admission.refusal is not None:
                self._running.count -= 1
        return admission

    def settle(self, tokens: int) -> None:
        """The request has ended, and used so many tokens."""
        self._running.count -= 1
        rate = self._rates.get("tokens")
        if rate is not None and tokens > 1:
            self._counters.add(self._name("tokens"), rate, tokens - 1)  # one was taken at the beginning

    @property
    def running(self) -> tuple[int, int | None]:
        """How many requests run, and how many may."""
        return self._running.count, self._most

    def find_burst(self, unit: str) -> int:
        """How many units may come at once."""
        return self._rates[unit].burst

    async def read_rates(self) -> tuple[RateLeft, ...]:
        """What is left of each rate. Takes nothing."""
        found = [
            (unit, rate, await self._counters.take(self._name(unit), rate, 0)) for unit, rate in self._rates.items()
        ]
        return tuple([_describe(*one) for one in found])

    async def _take(self, count: int) -> Admission:
        left = []
        for unit, rate in self._rates.items():
            amount = count if unit == "requests" else 1
            decision = await self._counters.take(self._name(unit), rate, amount)
            if not decision.is_allowed:
                if unit == "tokens" and "requests" in self._rates:
                    self._counters.add(self._name("requests"), self._rates["requests"], -count)
                return await self._refuse(self._explain(unit, rate, decision.retry_after))
            left.append(_describe(unit, rate, decision))
        return Admission(tuple(left), None)

    async def _refuse(self, refusal: Fault) -> Admission:
        return Admission(await self.read_rates(), refusal)

    def _explain(self, unit: str, rate: Rate, retry_after: float) -> Fault:
        wait = max(retry_after, 0.001)
        text = f"{self._owner} may use {rate.per_minute} {unit} a minute; more will be free in {format_duration(wait)}"
        return Fault("rate_limit", text, code=self._code, retry_after=wait)

    def _name(self, unit: str) -> str:
        return f"{self._owner} {unit}"


def _describe(unit: str, rate: Rate, decision: RateDecision) -> RateLeft:
    return RateLeft(unit, rate.per_minute, decision.remaining, decision.reset, time.time())
