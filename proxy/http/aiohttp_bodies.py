"""The bodies of requests, replies and responses, in the fewest steps: what has arrived is taken at once, and what is
written is one write.

This module uses parts of aiohttp's streams that aiohttp does not document; `test_aiohttp_server_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.base_protocol import BaseProtocol
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_writer import StreamWriter, _serialize_headers
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import REASON_PHRASES, StreamResponse
from multidict import CIMultiDict

from .known_heads import KnownHead

__all__ = [
    "KnownBody",
    "ShortQueue",
    "SingleWriteResponse",
    "WholeBody",
    "forget_chunks",
    "has_plain_chunks",
    "limit_waiting",
    "read_available",
    "take_available",
    "take_rest",
    "write_bytes",
    "write_chunk",
    "write_chunk_now",
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


_serialize: Callable[[str, Mapping[str, str]], bytes] = cast(Any, _serialize_headers)  # it takes any mapping


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


def has_plain_chunks(request: BaseRequest) -> bool:
    """Whether what follows a response's head, which is sent, is written in chunks, and nothing else is done with it:
    then `write_chunk` may write it."""
    writer = request.writer
    if not isinstance(writer, StreamWriter) or not writer.chunked:
        return False
    return writer.length is None and writer._compress is None


def write_chunk_now(protocol: BaseProtocol, data: bytes) -> bool:
    """Write bytes as `write_chunk` does, but only if the client is there and has taken most of what was written."""
    transport = protocol.transport
    if transport is None or protocol._paused or transport.is_closing():
        return False
    transport.write(b"%x\r\n%b\r\n" % (len(data), data))
    return True


def write_chunk(request: BaseRequest, data: bytes) -> None:
    """Write bytes of a response that `has_plain_chunks`, as one chunk. Raises ConnectionError."""
    write_bytes(request, b"%x\r\n%b\r\n" % (len(data), data))


def write_bytes(request: BaseRequest, data: bytes) -> None:
    """Write bytes of a response, its head included. Raises ConnectionError."""
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    transport.write(data)
    request.writer.output_size += len(data)


class SingleWriteResponse(StreamResponse):
    """The response to a POST: a head and a body of known length, in one write. It uses nothing of its base class, which
    does the same in four times as many steps. No two of the headers differ in case alone, and none is Content-Length,
    Date or Connection."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._code = status
        self._fields = headers
        self._stays_open: bool | None = None
        self._is_sent = False
        self.body = body

    @property
    def status(self) -> int:
        return self._code

    @property
    def headers(self) -> CIMultiDict[str]:
        return CIMultiDict(self._fields)

    @property
    def keep_alive(self) -> bool | None:
        return self._stays_open

    def force_close(self) -> None:
        self._stays_open = False

    async def prepare(self, request: BaseRequest) -> None:
        """Send head and body, once. Raises ConnectionError."""
        if not self._is_sent:
            write_bytes(request, self._write_head(request) + self.body)

    async def send_in_slices(self, request: BaseRequest, size: int, begin: Callable[[], None]) -> None:
        """Send head and body in slices of `size` bytes, and call `begin` before each. The next one is not written
        before the client has taken most of the one before. Raises ConnectionError."""
        begin()
        await request.writer.write(self._write_head(request))
        body = memoryview(self.body)
        for start in range(0, len(body), size):
            begin()
            await request.writer.write(body[start : start + size])
            await request.writer.drain()

    def _write_head(self, request: BaseRequest) -> bytes:
        self._is_sent = True
        headers, version = self._fields, request.version
        headers["Content-Length"] = str(len(self.body))
        headers["Date"] = rfc822_formatted_time()
        if self._stays_open is None:
            self._stays_open = request.keep_alive
        if self._stays_open is (version == HttpVersion10):
            headers["Connection"] = "keep-alive" if self._stays_open else "close"
        if self._code == 200 and version == HttpVersion11:
            return _serialize("HTTP/1.1 200 OK", headers)
        status_line = f"HTTP/{version[0]}.{version[1]} {self._code} {REASON_PHRASES.get(self._code, '')}"
        return _serialize(status_line, headers)

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""
