"""Overload: how many requests the proxy serves at one time, and which it refuses first.

    pressure   when                                                          who is refused
    ---------  ------------------------------------------------------------  -------------------------------------
    none       otherwise                                                     nobody
    high       four fifths of `in_flight` or of `memory` are in use, or the  requests of keys with `priority: low`
               event loop has been late for five seconds
    full       `in_flight` or `memory` is in use                             every new request

Streams that run are never ended, and health is always answered. A refusal has the status 503 and says when to come
back. While the event loop is late, /ready answers 503, so that a load balancer sends requests elsewhere.
"""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Literal, TypeAlias

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import ServerLimits

__all__ = ["OverloadGuard", "Pressure", "measure_memory", "read_memory_limit"]

Pressure: TypeAlias = Literal["none", "high", "full"]

_TICK = 0.25  # seconds
_LATE = 0.25  # seconds by which a tick may come late
_LONG = 5.0  # seconds of late ticks that count
_HIGH = 0.8
_RETRY_AFTER = 1.0
_PAGE = resource.getpagesize()
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


class OverloadGuard:
    """Measures the load. `start` it in the event loop that it watches, and `stop` it. `lag` is the delay of the last
    tick in seconds, `memory` that of the process in bytes, 0 where the system does not tell it."""

    def __init__(self, limits: ServerLimits) -> None:
        self.configure(limits)
        self._late_since: float | None = None
        self._expected = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._peak = 0  # requests that were served at one time since this was last asked
        self.lag = 0.0
        self.memory = 0

    def configure(self, limits: ServerLimits) -> None:
        """Judge by these limits from now on."""
        self._limits = limits
        self._most_memory = limits.memory or read_memory_limit()

    def start(self) -> None:
        """Begin to measure."""
        self.memory = measure_memory()
        self._schedule()

    def stop(self) -> None:
        """End measuring."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_late(self) -> bool:
        """Whether the event loop has been late for some time."""
        return self._late_since is not None and self._expected - self._late_since >= _LONG

    def judge(self, in_flight: int) -> Pressure:
        """The pressure with so many requests that are being served."""
        if in_flight > self._peak:
            self._peak = in_flight
        most, memory = self._limits.in_flight, self._most_memory
        if in_flight >= most or (memory and self.memory >= memory):
            return "full"
        if in_flight >= most * _HIGH or (memory and self.memory >= memory * _HIGH) or self.is_late:
            return "high"
        return "none"

    def take_peak(self) -> int:
        """The most requests that a new one has found being served, since this was last asked."""
        peak, self._peak = self._peak, 0
        return peak

    def create_fault(self, in_flight: int) -> Fault:
        """The refusal of a request."""
        text = f"the proxy has too much to do: {in_flight} requests are being served (server.limits)"
        return Fault("overloaded", text, code="overloaded", retry_after=_RETRY_AFTER)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._expected = loop.time() + _TICK
        self._timer = loop.call_at(self._expected, self._measure)

    def _measure(self) -> None:
        now = asyncio.get_running_loop().time()
        self.lag = now - self._expected
        if self.lag < _LATE:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = self._expected
        if self._most_memory:
            self.memory = measure_memory()
        self._schedule()


def measure_memory() -> int:
    """The resident memory of this process in bytes; 0 where the system does not tell it."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


def read_memory_limit() -> int:
    """Nine tenths of the memory that the container or the service may use, in bytes; 0 without such a limit. It is the
    lowest `memory.max` of the process's control group (version 2) and of those around it."""
    group = _find_cgroup()
    limits = [limit for folder in (group, *group.parents) if (limit := _read_limit(folder))]
    return min(limits, default=0) * 9 // 10


def _find_cgroup() -> Path:
    """The path of the process's control group below `_CGROUPS`; "." where the system does not tell it."""
    try:
        lines = _OWN_CGROUP.read_text().splitlines()
    except OSError:
        return Path()
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    return Path() if ".." in path.split("/") else Path(path)


def _read_limit(group: Path) -> int:
    """The limit of one control group in bytes; 0 if it has none: "max"."""
    try:
        return int((_CGROUPS / group / "memory.max").read_text())
    except (OSError, ValueError):
        return 0
