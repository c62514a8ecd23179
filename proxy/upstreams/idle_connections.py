"""The connections to one origin that wait for their next request.

aiohttp's connector has a pool of its own, for any number of origins, with limits and tracing. An upstream has one
origin, and its calls are limited elsewhere (`CallSlots`), so that a list does the same in a third of the steps.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, Protocol, TypeVar

__all__ = ["IdleConnections"]


class _Parser(Protocol):
    @property
    def should_close(self) -> bool:
        """Whether the connection cannot be used again."""

    def is_connected(self) -> bool: ...


class _Connection(Protocol):
    @property
    def protocol(self) -> _Parser | None: ...

    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Connection)


class IdleConnections(Generic[_C]):
    """Keeps each connection for `seconds`. The one that came last is used first. Created inside a running loop."""

    __slots__ = ("_is_closed", "_loop", "_seconds", "_timer", "_waiting")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._waiting: deque[tuple[_C, float]] = deque()  # the second: the time of the loop at which it is closed
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> _C | None:
        """A connection that is open and has received nothing since its last response; None if there is none."""
        while self._waiting:
            connection, end = self._waiting.pop()
            protocol = connection.protocol
            is_open = protocol is not None and protocol.is_connected() and not protocol.should_close
            if is_open and self._loop.time() < end:
                return connection
            connection.close()
        return None

    def put(self, connection: _C) -> None:
        """Keep a connection whose response has ended, or close it if the response was its last one."""
        protocol = connection.protocol
        if self._is_closed or protocol is None or protocol.should_close:
            connection.close()
            return
        self._waiting.append((connection, self._loop.time() + self._seconds))
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._close_old)

    def close(self) -> None:
        """Close all connections, and those that come later."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            self._waiting.pop()[0].close()

    def _close_old(self) -> None:
        now = self._loop.time()
        while self._waiting and self._waiting[0][1] <= now:
            self._waiting.popleft()[0].close()
        self._timer = self._loop.call_at(self._waiting[0][1], self._close_old) if self._waiting else None
