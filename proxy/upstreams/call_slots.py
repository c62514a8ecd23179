"""How many calls a provider gets at one time, and who waits for a free place.

A pool of connections that is used up would be a queue without a bound, in which a request loses its time and then fails
as if the provider had been slow. Here the queue is bounded, its waiting has a limit of its own, and both ends say so.
The places are given in the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque

from dragoman.adapters.faults import Fault

__all__ = ["BUSY", "CallSlots"]

BUSY = "upstream_busy"
"""The code of faults of calls that were never made, because the provider had as many as it may get."""

_RETRY_AFTER = 1.0  # seconds


class CallSlots:
    """The places for calls to the provider `name`: `slots` at one time, and `queue` calls that wait for one."""

    __slots__ = ("_free", "_name", "_waiting", "queue", "slots")

    def __init__(self, name: str, slots: int, queue: int) -> None:
        self._name = name
        self.slots = self._free = slots
        self.queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def in_use(self) -> int:
        return self.slots - self._free

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_free(self) -> bool:
        """Whether `take` gets a place."""
        return self._free > 0 and not self._waiting

    def take(self) -> bool:
        """Take a free place. False if there is none: then wait for one."""
        if not self.is_free:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Wait for a place, and take it. Raises Fault if too many wait already."""
        if len(self._waiting) >= self.queue:
            text = f"{self._name}: {self.slots} calls are running, and {len(self._waiting)} are waiting"
            raise Fault("upstream_unavailable", text, code=BUSY, retry_after=_RETRY_AFTER)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the place was given at the same moment
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a place back: to the one that has waited longest, if any."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
