"""The protocols that providers turned out not to serve, although their dialect's default assumes so.

What is found out counts for one target and one model there, and for a while: a server may only have been starting.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["UnservedProtocols"]

_LASTS = 600.0  # seconds
_MOST_MODELS = 1000


class UnservedProtocols:
    """What is known of one target. `clock` gives seconds."""

    __slots__ = ("_clock", "_found")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[tuple[str, str], float] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def record(self, model: str, protocol: str) -> bool:
        """Record that the provider does not serve the protocol for this model. False if that was known."""
        is_new = protocol not in self.list_for(model)
        if len(self._found) >= _MOST_MODELS:
            self._found.clear()
        self._found[model, protocol] = self._clock() + _LASTS
        return is_new

    def list_for(self, model: str) -> frozenset[str]:
        """The protocols that the provider does not serve for this model."""
        now = self._clock()
        self._found = {key: until for key, until in self._found.items() if until > now}
        return frozenset(protocol for name, protocol in self._found if name == model)
