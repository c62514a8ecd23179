"""Writes that are made together, in the next turn of the event loop.

A write to a connection on this machine wakes its reader, which takes the writer longer than the write itself. If many
requests are being answered, what they write in one turn is written right after one another: the first write wakes the
reader, the others find it awake, and the system's code for them is in the processor's caches. If few are being
answered, everything is written at once, because one more turn would only take time.

Whoever closes a connection, or writes to it in another way, calls `write_now` first.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["WriteTurns", "find_write_turns"]

_FEW = 4  # requests: up to so many, nothing waits


class _Transport(Protocol):
    def is_closing(self) -> bool: ...

    def write(self, data: bytes, /) -> None: ...


class WriteTurns:
    """What waits to be written in one event loop. `in_progress` is how many requests are being answered."""

    __slots__ = ("_waiting", "in_progress", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.in_progress = 0
        self._waiting: dict[_Transport, bytes] = {}

    def write(self, transport: _Transport, data: bytes) -> None:
        """Write bytes now or in the next turn, after what waits for this transport."""
        if self.in_progress <= _FEW:
            if self._waiting:
                self.write_now(transport)
            transport.write(data)
            return
        if not self._waiting:
            self.loop.call_soon(self._write_all)
        self._waiting[transport] = self._waiting.get(transport, b"") + data

    def write_now(self, transport: _Transport | None) -> None:
        """Write what waits for this transport, if there is one."""
        if transport is None or not (data := self._waiting.pop(transport, b"")) or transport.is_closing():
            return
        transport.write(data)

    def has_waiting(self, transport: _Transport) -> bool:
        """Whether something waits for this transport."""
        return transport in self._waiting

    def _write_all(self) -> None:
        """Write everything, except to connections that were closed meanwhile."""
        waiting, self._waiting = iter(self._waiting.items()), {}
        try:
            for transport, data in waiting:
                if not transport.is_closing():
                    transport.write(data)
        finally:
            for transport, data in waiting:  # only if a write has failed
                self.write(transport, data)


_latest: WriteTurns | None = None  # a process has one event loop


def find_write_turns(loop: asyncio.AbstractEventLoop) -> WriteTurns:
    """Those of a running event loop."""
    global _latest
    if _latest is None or _latest.loop is not loop:
        _latest = WriteTurns(loop)
    return _latest
