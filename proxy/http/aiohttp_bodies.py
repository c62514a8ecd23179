"""The bodies of requests and replies, in the fewest steps: what has arrived is taken at once.

This module uses parts of aiohttp's streams that aiohttp does not document; `test_aiohttp_server_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, TypeVar, cast

from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from .known_heads import KnownHead

__all__ = [
    "KnownBody",
    "ShortQueue",
    "WholeBody",
    "forget_chunks",
    "limit_waiting",
    "read_available",
    "take_available",
    "take_rest",
]


_T = TypeVar("_T")

_NOTHING_LEFT = cast("deque[bytes]", ())
"""What is left of a body that was taken as a whole. Nothing can be added to it."""


class ShortQueue(list[_T]):
    """A queue that seldom has more than one item. An empty deque takes 760 bytes, and aiohttp has four of them for each
    stream, as long as it runs."""

    __slots__ = ()

    def popleft(self) -> _T:
        """Take the first item. Raises IndexError."""
        return self.pop(0)

    def appendleft(self, item: _T) -> None:
        """Put an item before the others."""
        self.insert(0, item)


def take_rest(content: StreamReader) -> bytes | None:
    """The whole rest of a body of which all has arrived, in one piece; None if that is not so. Most bodies arrive in
    one read, and `readany` would do twelve times as much."""
    if content.__class__ is WholeBody:
        return content.take() or None
    if content is EMPTY_PAYLOAD:
        return None
    buffer = content._buffer
    if not content._eof or len(buffer) != 1 or content._exception is not None:
        return None
    if content._buffer_offset or content._size > content._low_water:  # reading may be paused
        return None
    content._size, content._buffer = 0, _NOTHING_LEFT
    return buffer[0]


def limit_waiting(content: StreamReader, size: int) -> None:
    """Make a body hold no more than about `size` bytes before reading pauses."""
    content._low_water, content._high_water = size, size // 2


def take_available(content: StreamReader) -> bytes:
    """All bytes of a body that have arrived, in one piece; empty if there are none, or if reading failed. `read` does
    the same, and counts the bytes of each HTTP chunk."""
    if content is EMPTY_PAYLOAD:
        return b""
    buffer = content._buffer
    if not buffer or content._exception is not None:
        return b""
    data = buffer[0] if len(buffer) == 1 else b"".join(buffer)
    buffer.clear()
    if content._buffer_offset:
        data, content._buffer_offset = data[content._buffer_offset :], 0
    content._size = 0
    content._cursor += len(data)
    if content._protocol._reading_paused:
        content._protocol.resume_reading()
    return data


async def read_available(content: StreamReader) -> bytes:
    """The next bytes of a body, as many as have arrived; empty at its end. Raises what `readany` raises."""
    if content is EMPTY_PAYLOAD:
        return b""
    while not content._buffer and not content._eof and content._exception is None:
        await content._wait("read")
    return take_available(content) or await content.readany()


class WholeBody(StreamReader):
    """The body of a request with a known head, `head`, which came in one read. It has nothing of its base class but
    what is defined here, and so takes a tenth of the steps."""

    __slots__ = ("_data", "head")

    def __init__(self, head: KnownHead[Any], data: bytes) -> None:
        self.head = head
        self._data = data
        self.total_bytes = len(data)

    def take(self) -> bytes:
        """The whole body, once."""
        data, self._data = self._data, b""
        return data

    async def readany(self) -> bytes:
        """The whole body, then nothing."""
        return self.take()

    def is_eof(self) -> bool:
        return True

    def at_eof(self) -> bool:
        return not self._data

    def exception(self) -> None:
        """All has arrived."""

    def set_exception(self, exc: type[BaseException] | BaseException, exc_cause: BaseException | None = None) -> None:
        """What happens now does not matter to a body that has arrived."""


class KnownBody(StreamReader):
    """The body of a request with a known head, `head`, which comes in several reads."""

    __slots__ = ("head",)

    def __init__(self, protocol: BaseProtocol, limit: int, head: KnownHead[Any], data: bytes) -> None:
        super().__init__(protocol, limit, loop=asyncio.get_running_loop())
        self.head = head
        self.feed_data(data)


class _UnchunkedReader(StreamReader):
    """A body whose reader does not want to know where HTTP chunks end."""

    __slots__ = ()

    def begin_http_chunk_receiving(self) -> None:
        """A chunk begins."""

    def end_http_chunk_receiving(self) -> None:
        """A chunk ends."""


def forget_chunks(content: StreamReader) -> None:
    """Make a body one that does not keep where its HTTP chunks end: that is a list, and steps for each of them."""
    content.__class__ = _UnchunkedReader
    content._http_chunk_splits = None
    content._buffer = cast("deque[bytes]", ShortQueue(content._buffer))
