"""The responses to a POST, in the fewest steps: a whole response is one write. A stream is one for each chunk, and the
head goes with the first.

This module uses parts of aiohttp's server that aiohttp does not document; `test_aiohttp_server_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.base_protocol import BaseProtocol
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_writer import _serialize_headers
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import REASON_PHRASES, StreamResponse
from multidict import CIMultiDict

from .aiohttp_request import Request

__all__ = ["ChunkedResponse", "OwnHeadResponse", "SingleWriteResponse", "write_chunk", "write_chunk_now"]

_serialize: Callable[[str, Mapping[str, str]], bytes] = cast(Any, _serialize_headers)  # it takes any mapping
_OK = "HTTP/1.1 200 OK"
_LAST_CHUNK = b"0\r\n\r\n"


class OwnHeadResponse(StreamResponse):
    """A response that writes its head itself. It uses nothing of its base class, which does the same in four times as
    many steps. `fields` are its headers, and nobody else's: no two differ in case alone, and at first none is Date,
    Connection, or about the length."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self._code = status
        self.fields = headers
        self._stays_open: bool | None = None
        self._is_sent = False

    @property
    def status(self) -> int:
        return self._code

    @property
    def headers(self) -> CIMultiDict[str]:
        return CIMultiDict(self.fields)

    @property
    def keep_alive(self) -> bool | None:
        return self._stays_open

    def force_close(self) -> None:
        self._stays_open = False

    def _write_head(self, request: BaseRequest) -> bytes:
        self._is_sent = True
        headers, version = self.fields, request.version
        headers["Date"] = rfc822_formatted_time()
        if self._stays_open is None:
            self._stays_open = request.keep_alive
        if self._stays_open is (version == HttpVersion10):
            headers["Connection"] = "keep-alive" if self._stays_open else "close"
        if self._code == 200 and version == HttpVersion11:
            return _serialize(_OK, headers)
        status_line = f"HTTP/{version[0]}.{version[1]} {self._code} {REASON_PHRASES.get(self._code, '')}"
        return _serialize(status_line, headers)


class SingleWriteResponse(OwnHeadResponse):
    """A head and a body of known length, in one write, which may wait for its turn (`write_turns`)."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(status, headers)
        headers["Content-Length"] = str(len(body))
        self.body = body

    async def prepare(self, request: BaseRequest) -> None:
        """Send head and body, once. Raises ConnectionError."""
        if not self._is_sent:
            data = self._write_head(request) + self.body
            transport = _begin_output(request)
            if self._stays_open:
                cast(Any, request.protocol).write_turns.write(transport, data)
            else:
                transport.write(data)

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

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""


class ChunkedResponse(OwnHeadResponse):
    """A head with the status 200, and a body in chunks, whose length nobody knows. The client speaks HTTP/1.1."""

    def __init__(self, request: BaseRequest, headers: dict[str, str]) -> None:
        super().__init__(200, headers)
        headers["Transfer-Encoding"] = "chunked"
        self._request = request
        self._has_ended = False

    async def prepare(self, request: BaseRequest) -> None:
        """Send the head without a chunk, unless it is sent. Raises ConnectionError."""
        if not self._is_sent:
            _write(request, self._write_head(request))

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a chunk, with the head before the first one. Raises ConnectionError."""
        if self._has_ended:
            raise ConnectionResetError("the response has ended")
        head = b"" if self._is_sent else self._write_head(self._request)
        _write(self._request, head + b"%x\r\n%b\r\n" % (len(data), bytes(data)) if data else head)

    def write_last(self, data: bytes) -> None:
        """Send a chunk and the last chunk, after a head that is sent, in one write. Raises ConnectionError."""
        self._has_ended = True
        _write(self._request, b"%x\r\n%b\r\n%b" % (len(data), data, _LAST_CHUNK))

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the last chunk, once. Raises ConnectionError."""
        if not self._has_ended:
            self._has_ended = True
            head = b"" if self._is_sent else self._write_head(self._request)
            _write(self._request, head + _LAST_CHUNK)


def write_chunk_now(protocol: BaseProtocol, data: bytes) -> bool:
    """Write bytes as `write_chunk` does, but only if the client is there and has taken most of what was written."""
    transport = protocol.transport
    if transport is None or protocol._paused or transport.is_closing():
        return False
    transport.write(b"%x\r\n%b\r\n" % (len(data), data))
    return True


def write_chunk(request: BaseRequest, data: bytes) -> None:
    """Write bytes of a ChunkedResponse whose head is sent, as one chunk. Raises ConnectionError."""
    _write(request, b"%x\r\n%b\r\n" % (len(data), data))


def _write(request: BaseRequest, data: bytes) -> None:
    """Write bytes of a response, its head included. Raises ConnectionError."""
    _begin_output(request).write(data)


def _begin_output(request: BaseRequest) -> asyncio.Transport:
    """What takes the bytes of a response. Raises ConnectionError."""
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    cast(Request, request).has_own_output = True
    return transport
