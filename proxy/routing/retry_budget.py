"""How many tries a provider gets beyond the first ones: a share of its requests, so that retries never add much load to
a provider that is in trouble."""

from __future__ import annotations

import time
from collections.abc import Callable

from dragoman.proxy.config.traffic import Retries

__all__ = ["RetryBudget"]

_PERIOD = 10.0  # seconds for which what is not used is kept


class RetryBudget:
    """A bucket of retries: each request adds `ratio` of one, each second adds `per_second`."""

    __slots__ = ("_clock", "_filled_at", "_most", "_saved", "rules")

    def __init__(self, rules: Retries, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        is_open = rules.ratio > 0 or rules.per_second > 0
        self._most = self._saved = max(1.0, rules.per_second * _PERIOD) if is_open else 0.0
        self._filled_at = clock()

    def add_request(self) -> None:
        """A request's first try goes to the provider."""
        self._saved = min(self._saved + self.rules.ratio, self._most)

    def take(self) -> bool:
        """Take one retry. False if none is left."""
        now = self._clock()
        self._saved = min(self._saved + (now - self._filled_at) * self.rules.per_second, self._most)
        self._filled_at = now
        if self._saved < 1:
            return False
        self._saved -= 1
        return True
