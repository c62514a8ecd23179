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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.traffic import RateLimits

__all__ = ["LIMITED_HERE", "Limiter", "LocalCounters", "Rate", "RateCounters", "RateDecision", "count_tokens"]

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


class RateCounters(Protocol):
    """Counts units by name. Processes that share their limits share what implements this."""

    async def take(self, name: str, rate: Rate, amount: float) -> RateDecision:
        """Take units if there are so many."""

    def add(self, name: str, rate: Rate, amount: float) -> None:
        """Count units that were used already."""


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


class Limiter:
    """Admits requests by the rules of one key or provider; `owner` names it in messages, and `code` the refusals. A
    request that was admitted has to be settled."""

    def __init__(
        self, owner: str, rules: RateLimits, counters: RateCounters, code: str = "rate_limit_exceeded"
    ) -> None:
        self._owner = owner
        self._code = code
        self._counters = counters
        self._most = rules.concurrency
        self._running = 0
        self._rates = {
            unit: Rate(limit, min(rules.burst or limit, limit))
            for unit, limit in (("requests", rules.requests_per_minute), ("tokens", rules.tokens_per_minute))
            if limit is not None
        }

    async def admit(self, count: int = 1) -> dict[str, str]:
        """Admit so many requests at once. Returns the headers that tell the client what is left, as OpenAI names them.
        Raises Fault."""
        if self._most is not None and self._running >= self._most:
            text = f"{self._owner} may have {self._most} requests at one time"
            raise Fault("rate_limit", text, code=self._code, retry_after=1.0)
        headers: dict[str, str] = {}
        for unit, rate in self._rates.items():
            amount = count if unit == "requests" else 1
            decision = await self._counters.take(f"{self._owner} {unit}", rate, amount)
            if not decision.is_allowed:
                if unit == "tokens" and "requests" in self._rates:
                    self._counters.add(f"{self._owner} requests", self._rates["requests"], -count)
                raise self._refuse(unit, rate, decision)
            headers[f"x-ratelimit-limit-{unit}"] = str(rate.per_minute)
            headers[f"x-ratelimit-remaining-{unit}"] = str(decision.remaining)
            headers[f"x-ratelimit-reset-{unit}"] = _format_duration(decision.reset)
        self._running += 1
        return headers

    def settle(self, tokens: int) -> None:
        """The request has ended, and used so many tokens."""
        self._running -= 1
        rate = self._rates.get("tokens")
        if rate is not None and tokens > 1:
            self._counters.add(f"{self._owner} tokens", rate, tokens - 1)  # one was taken at the beginning

    def _refuse(self, unit: str, rate: Rate, decision: RateDecision) -> Fault:
        wait = max(decision.retry_after, 0.001)
        text = f"{self._owner} may use {rate.per_minute} {unit} a minute; more will be free in {_format_duration(wait)}"
        return Fault("rate_limit", text, code=self._code, retry_after=wait)


def count_tokens(usage: Mapping[str, Any] | None) -> int:
    """The tokens of a usage in canonical form; 0 if it is not known."""
    if not usage:
        return 0
    parts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")]
    total = usage.get("total_tokens")
    return total if isinstance(total, int) else sum(part for part in parts if isinstance(part, int))


def _format_duration(seconds: float) -> str:
    """A duration as OpenAI writes it: 20ms, 1.5s, 1m30s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3g}s"
