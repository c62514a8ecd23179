"""Reads large bodies in small pieces, one piece in each turn of the event loop.

By itself uvloop reads 256 kB at once, and again as long as there is more, and what has arrived is then joined. A sender
that is fast enough so makes all others wait for milliseconds, most of them for memory that the system has to provide.
So the rest of a body of which many bytes have arrived is read like this:

    a piece    is read into a buffer that is used again, and copied while it is in the processor's cache. Reading pauses
               until the piece has been taken, so that in the end the kernel stops the sender.
    a turn     one of the tasks that read such bodies goes on in each turn of the event loop, in the order in which they
               ask. So others wait for one piece, however many send large bodies, and one sender alone gets every turn.
               A connection that has had its turn and waits for its sender reads one piece whenever it comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

__all__ = ["PIECE", "BoundedReads", "ReadTurns"]

PIECE = 64 * 1024
"""Bytes of a large body that are read at once. From 128 kB on, glibc asks the system for the memory of each of them."""

_H = TypeVar("_H", bound=asyncio.Protocol)


class ReadTurns:
    """The tasks that wait for their turn to read, and the buffer that their connections read into. Used inside one
    event loop."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(PIECE))
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    async def wait(self) -> None:
        """Return in a turn of the event loop that no other task gets."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._grant)
        await turn

    def _grant(self) -> None:
        """Let the first one go on, and look again in the next turn."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its task may have been cancelled
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._grant)
                return
        self._is_scheduled = False


class BoundedReads(asyncio.BufferedProtocol, Generic[_H]):
    """Between a transport and a protocol: the transport reads no more at once than a buffer holds, which is used
    again."""

    __slots__ = ("_buffer", "_take", "handler")

    def __init__(self, handler: _H, buffer: memoryview) -> None:
        self.handler = handler
        self._buffer = buffer
        self._take = handler.data_received

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(bytes(self._buffer[:nbytes]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.handler.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.handler.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self.handler.eof_received()

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()
