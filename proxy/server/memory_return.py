"""Memory that a busy time needed goes back to the system when the time is over.

glibc keeps free memory between what is in use, and asks for more if a request does not fit there. Giving it back takes
some milliseconds, so it is done once after each busy time, in a thread.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

__all__ = ["MemoryReturn", "find_trim"]

_TICK = 1.0  # seconds
_BUSY = 16  # requests at one time
_QUIET = 4  # a time is quiet if at most this part of them is left: a quarter


class MemoryReturn:
    """Calls `trim` after each busy time. `take_peak` says how many requests were served at one time since it was last
    asked. `start` it in the event loop, and `stop` it."""

    def __init__(self, take_peak: Callable[[], int], trim: Callable[[], object] | None) -> None:
        self._take_peak = take_peak
        self._trim = trim
        self._most = 0  # requests at one time since the last trim
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look, if there is anything to be done."""
        if self._trim is not None:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        if self.is_time_over() and self._trim is not None:
            loop.run_in_executor(None, self._trim)
        self._timer = loop.call_later(_TICK, self._tick)

    def is_time_over(self) -> bool:
        """Whether a busy time has ended since this was last asked."""
        peak = self._take_peak()
        self._most = max(self._most, peak)
        if self._most < _BUSY or peak * _QUIET > self._most:
            return False
        self._most = peak
        return True


def find_trim() -> Callable[[], object] | None:
    """glibc's function that gives free memory back; None with another C library."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    return lambda: trim(0)
