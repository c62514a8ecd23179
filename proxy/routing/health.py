"""The health of targets: which one is left alone for a while, and when it is tried again.

A target is a provider with one of its models, so that a model which fails does not stop the others of its provider.

    state      what happens                                        next state   it is tried
    ---------  --------------------------------------------------  -----------  ------------------------------------
    closed     5 failures in a row, or more than half of at        open         always
               least 20 requests within a minute
    open       the pause is over: 5 s, twice as long each time,    half-open    only if no other target is left: the
               at most 60 s, and up to a tenth more or less                     one that failed first
    half-open  a success                                           closed       by one request at a time
    half-open  a failure                                           open

A target may also pause for a time that is known. It is open meanwhile: after 429 for `retry-after`, at most a minute;
after a refused key, or without credit, for a minute, and half-open then. The numbers are those of the configuration's
`breaker`.

All times are in seconds of a clock that never jumps.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from random import Random
from typing import Literal, TypeAlias

from dragoman.proxy.config.traffic import Breaker

__all__ = ["HealthRegistry", "TargetHealth", "Verdict"]

Verdict: TypeAlias = Literal["answered", "failed", "limited", "locked_out", "unknown"]
"""What a try shows of its target. `unknown`: nothing, the client left or the request was at fault."""

_MOST_TARGETS = 2000
_LONGEST_LIMIT = 60.0  # seconds of a pause that a provider asks for
_LOCKED_OUT = 60.0
_UNTOLD_LIMIT = 1.0  # seconds after a 429 without a time
_JITTER = 0.1
_SMOOTHING = 0.2


class TargetHealth:
    """What is known of one target. `begin` and `end` surround each try. `latency` is the smoothed time in seconds to
    the first byte of an answer, None before the first one."""

    __slots__ = (
        "_clock",
        "_failures",
        "_is_probed",
        "_pause",
        "_paused_until",
        "_random",
        "_recent",
        "_rules",
        "_window",
        "failed_at",
        "in_flight",
        "latency",
    )

    def __init__(self, rules: Breaker, clock: Callable[[], float], random: Random) -> None:
        self._rules = rules
        self._clock = clock
        self._random = random
        self._failures = 0  # in a row
        self._pause = 0.0  # the last one after failures or a refused key; 0 while it is closed
        self._paused_until = 0.0
        self._is_probed = False
        self._window = 0.0
        self._recent = [0, 0, 0, 0]  # answers and failures of this half of the window, and of the half before
        self.failed_at = 0.0
        self.in_flight = 0
        self.latency: float | None = None

    @property
    def is_available(self) -> bool:
        """Whether a request may try the target: not during a pause, and after it only one at a time."""
        if not self._paused_until:
            return True
        return self._clock() >= self._paused_until and not (self._pause and self._is_probed)

    @property
    def is_untroubled(self) -> bool:
        """Whether the target does not pause, and has not just paused."""
        return not self._paused_until

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        if self._clock() < self._paused_until:
            return "open"
        return "half-open" if self._pause else "closed"

    @property
    def remaining_pause(self) -> float:
        """The seconds until the target may be tried again, 0 if it may be now."""
        return max(0.0, self._paused_until - self._clock()) if self._paused_until else 0.0

    def begin(self) -> None:
        """A try of the target begins."""
        self.in_flight += 1
        if self._pause:
            self._is_probed = True

    def end(self, verdict: Verdict, retry_after: float | None = None) -> float:
        """The try ended. Returns for how many seconds the target pauses from now on, 0 if it does not begin to."""
        self.in_flight -= 1
        self._is_probed = False
        if verdict == "answered":
            self._failures, self._pause, self._paused_until = 0, 0.0, 0.0
            self._count(0)
        elif verdict == "failed":
            return self._fail()
        elif verdict == "limited":
            return self._rest(min(retry_after or _UNTOLD_LIMIT, _LONGEST_LIMIT))
        elif verdict == "locked_out":
            self._pause = _LOCKED_OUT
            return self._rest(_LOCKED_OUT)
        return 0.0

    def adopt(self, rules: Breaker) -> None:
        """Follow the rules of a new configuration from now on."""
        self._rules = rules

    def measure(self, seconds: float) -> None:
        """Take the time to the first byte of an answer."""
        known = self.latency
        self.latency = seconds if known is None else known + _SMOOTHING * (seconds - known)

    def _fail(self) -> float:
        self.failed_at = self._clock()
        self._failures += 1
        answers, failures = self._count(1)
        rules, total = self._rules, answers + failures
        is_bad = self._failures >= rules.failures or (total >= rules.requests and failures > total * rules.ratio)
        if not self._pause and not is_bad:
            return 0.0
        if self._pause and self._clock() < self._paused_until:
            return 0.0  # it was tried although it pauses, or began before
        self._pause = min(self._pause * 2 or rules.pause, rules.longest_pause)
        return self._rest(self._pause * self._random.uniform(1 - _JITTER, 1 + _JITTER))

    def _rest(self, seconds: float) -> float:
        self.failed_at = self._clock()
        self._paused_until = max(self._paused_until, self.failed_at + seconds)
        return seconds

    def _count(self, position: int) -> tuple[int, int]:
        """Count an answer (0) or a failure (1). Returns both sums of the window."""
        now, half = self._clock(), self._rules.window / 2
        if now - self._window >= half:
            before = self._recent[:2] if now - self._window < 2 * half else [0, 0]
            self._recent, self._window = [0, 0, *before], now
        self._recent[position] += 1
        return self._recent[0] + self._recent[2], self._recent[1] + self._recent[3]


class HealthRegistry:
    """The health of every target, by provider and by the provider's name of the model. Clients can choose names, so the
    targets that were used longest ago are forgotten."""

    def __init__(self, rules: Breaker, random: Random, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._random = random
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], TargetHealth] = OrderedDict()

    def find(self, provider: str, model: str) -> TargetHealth:
        """The health of one target."""
        health = self._known.pop((provider, model), None) or TargetHealth(self._rules, self._clock, self._random)
        self._known[provider, model] = health
        if len(self._known) > _MOST_TARGETS:
            self._known.popitem(last=False)
        return health

    def take_over(self, previous: HealthRegistry, providers: Collection[str]) -> None:
        """Take the health of the targets of these providers from the registry of the previous configuration."""
        for (provider, model), health in previous.list_all():
            if provider in providers:
                health.adopt(self._rules)
                self._known[provider, model] = health

    def list_all(self) -> list[tuple[tuple[str, str], TargetHealth]]:
        """Every known target and its health."""
        return [*self._known.items()]
