"""The HTTP server: aiohttp's low-level server, with the defaults of a gateway.

The application answers requests that the HTTP parser rejects, in HTTP/1.1, and its answer quotes nothing of them. If a
client leaves, its handler is cancelled. Only the application writes a log.

This module and `aiohttp_bodies` alone use parts of aiohttp's server that aiohttp does not document;
`test_aiohttp_server_internals.py` names them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.http_parser import HttpRequestParser
from aiohttp.http_writer import _serialize_headers
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import REASON_PHRASES, Response, StreamResponse
from aiohttp.web_server import Server
from multidict import CIMultiDict
from yarl import URL

from dragoman.adapters.faults import Fault

from .head_rules import MOST_HEAD_BYTES, find_bad_head, head_too_large, measure_head

__all__ = [
    "Application",
    "HttpServer",
    "RequestPayloadError",
    "SingleWriteResponse",
    "send_continue",
]

_MOST_HEADERS = 100
_LINGER = 2.0  # seconds to read the rest of a refused body, so that the client can read the answer
_ERROR = ERROR._replace(version=HttpVersion11)
_HEAD_END = b"\r\n\r\n"
_MOST_UNSENT = 4 * 1024  # bytes that wait for the client before the next ones are written
_MOST_FRAMING = 512 * 1024  # bytes of chunks that are no content; the parser may hold back as much that it has not read
_PER_BYTE = 8  # that chunks of one byte have, their content included
_DUPLICATE = re.compile("Duplicate .{1,40} header")


class Application(Protocol):
    """Answers the requests."""

    async def handle(self, request: BaseRequest) -> StreamResponse: ...

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        """Answer a request that never reached `handle`, or that `handle` could not answer."""

    def log_defect(self, error: BaseException | None) -> None:
        """Log an exception that nothing handled."""


class HttpServer(Server):
    """Creates a protocol for each connection. `header_timeout` limits, in seconds, how long a request's head may
    take. Connections beyond `most_connections` get 503."""

    def __init__(self, application: Application, header_timeout: float, most_connections: int = 10_000) -> None:
        self.configure(header_timeout, most_connections)
        super().__init__(application.handle, request_factory=_create_request, handler_cancellation=True)
        self._application = application
        self.is_draining = False

    def configure(self, header_timeout: float, most_connections: int) -> None:
        """Set the limits of new connections."""
        self._options: dict[str, Any] = {
            "access_log": None,
            "keepalive_timeout": header_timeout,
            "max_headers": _MOST_HEADERS,
            "auto_decompress": False,
            "lingering_time": _LINGER,
        }
        self.most_connections = most_connections

    def __call__(self) -> RequestHandler:
        return _Connection(self._application, self, **self._options)

    def drain(self) -> None:
        """From now on, every response is the last one of its connection, and says so unless it has begun."""
        self.is_draining = True

    def close_idle_connections(self) -> None:
        """Close the connections on which no part of a request has arrived."""
        for connection in self._list():
            if connection.is_idle and not connection.has_request:
                connection.force_close()

    def has_requests(self) -> bool:
        """True if a request, or a part of one, has arrived and is not answered."""
        return any(connection.has_request for connection in self._list())

    def _list(self) -> list[_Connection]:
        return [connection for connection in self.connections if isinstance(connection, _Connection)]


def create_inner_request(request: BaseRequest, path: str, headers: Mapping[str, str], body: bytes) -> BaseRequest:
    """A POST that is answered on the connection of another request, which was read to its end."""
    inner = request.clone(method="POST", rel_url=URL(path, encoded=True), headers=CIMultiDict(headers))
    content = StreamReader(request.protocol, limit=2**16, loop=asyncio.get_running_loop())
    content.feed_data(body)
    content.feed_eof()
    inner._payload = content
    return inner


async def send_continue(request: BaseRequest) -> None:
    """Send the interim response 100. The final response has not begun after it."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0


class SingleWriteResponse(StreamResponse):
    """The response to a POST: a head and a body of known length, in one write. It uses nothing of its base class, which
    does the same in four times as many steps."""

    def __init__(self, status: int, body: bytes, headers: CIMultiDict[str]) -> None:
        self._code = status
        self._all_headers = headers
        self._stays_open: bool | None = None
        self._is_sent = False
        self.body = body

    @property
    def status(self) -> int:
        return self._code

    @property
    def headers(self) -> CIMultiDict[str]:
        return self._all_headers

    @property
    def keep_alive(self) -> bool | None:
        return self._stays_open

    def force_close(self) -> None:
        self._stays_open = False

    async def prepare(self, request: BaseRequest) -> None:
        """Send head and body, once. Raises ConnectionError."""
        if not self._is_sent:
            await request.writer.write(self._write_head(request) + self.body)

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
        headers, version = self._all_headers, request.version
        headers["Content-Length"] = str(len(self.body))
        headers["Date"] = rfc822_formatted_time()
        if self._stays_open is None:
            self._stays_open = request.keep_alive
        if self._stays_open is (version == HttpVersion10):
            headers["Connection"] = "keep-alive" if self._stays_open else "close"
        status_line = f"HTTP/{version[0]}.{version[1]} {self._code} {REASON_PHRASES.get(self._code, '')}"
        return _serialize_headers(status_line, headers)

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send."""


class _Connection(RequestHandler):
    """One client connection."""

    __slots__ = ("_application", "_framing_size", "_head_begun", "_head_size", "_server")

    def __init__(self, application: Application, server: HttpServer, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._application = application
        self._server = server
        self._head_begun = False  # a part of a request's head has arrived, but not all of it
        self._head_size = 0  # bytes of that part
        self._framing_size = 0  # bytes of a request after those that came with its head

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limit what waits for a client that does not read. Refuse a connection that is one too many, in HTTP."""
        super().connection_made(transport)
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=_MOST_UNSENT)
        if len(self._server.connections) > self._server.most_connections:
            text = "the proxy has as many connections as it may (server.limits.connections)"
            self._reject(Fault("overloaded", text, code="overloaded", retry_after=1.0))

    def data_received(self, data: bytes) -> None:
        """Reject what the parser lets pass. Wake a handler that waits for a body if the parser rejects the body:
        aiohttp leaves it waiting."""
        known = len(self._messages)
        RequestHandler.data_received(self, data)
        if len(self._messages) > known:
            if self._messages[-1][0].__class__ is _ErrInfo and not known:
                self._keep_good_requests(data)
            self._head_size = self._framing_size = 0
            for position in range(known, len(self._messages)):
                self._check_head(position, len(data))
        elif self._awaits_head():
            self._head_size += len(data)
            if self._head_size > MOST_HEAD_BYTES >= self._head_size - len(data):
                self._reject(head_too_large())
        elif self._current_request is not None:
            self._check_framing(self._current_request.content, len(data))
        self._head_begun = self.is_idle and (self._head_begun or bool(data.strip(b"\r\n")))
        if self._messages and self._current_request is not None and isinstance(self._messages[-1][0], _ErrInfo):
            self._current_request.content.set_exception(RequestPayloadError("the body is not valid"))

    def _keep_good_requests(self, data: bytes) -> None:
        """Answer the requests before a bad one that came in the same data, of which the parser gives only the error.
        It parses the data once more, in parts that end with a head, if a request begins with them."""
        parts = data.split(_HEAD_END)
        if len(parts) == 1 or self._waiter is None or self._head_begun:
            return
        self._messages.clear()
        self._parser = self._create_parser()
        for part in (*(part + _HEAD_END for part in parts[:-1]), parts[-1]):
            RequestHandler.data_received(self, part)
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                break
        if len(self._messages) > 1 and not self._messages[-2][1].is_eof():
            del self._messages[-2]  # the error is in its body

    def _create_parser(self) -> HttpRequestParser:
        return HttpRequestParser(
            self,
            asyncio.get_running_loop(),
            self._read_bufsize,
            max_line_size=self.max_line_size,
            max_field_size=self.max_field_size,
            max_headers=self.max_headers,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def _check_framing(self, content: StreamReader, received: int) -> None:
        """Refuse a body that consists of little but the sizes and extensions of chunks; the parser accepts any."""
        self._framing_size += received
        if self._framing_size > _MOST_FRAMING and self._framing_size > _MOST_FRAMING + _PER_BYTE * content.total_bytes:
            content.set_exception(RequestPayloadError("the body is not valid"))

    def _check_head(self, position: int, received: int) -> None:
        """Replace a request of the queue by the error that it gets; `received` is how many bytes brought it."""
        message, _ = self._messages[position]
        if isinstance(message, _ErrInfo):
            return
        fault = find_bad_head(message.version, message.headers)
        if fault is None and received > MOST_HEAD_BYTES < measure_head(message.raw_headers):
            fault = head_too_large()
        if fault is not None:
            self._messages[position] = (_to_error(fault), EMPTY_PAYLOAD)

    def _reject(self, fault: Fault) -> None:
        """Answer with a fault, after what was requested before."""
        self._messages.append((_to_error(fault), EMPTY_PAYLOAD))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _awaits_head(self) -> bool:
        """True if what arrives belongs to the head of the next request."""
        return self.is_idle or (self._current_request is not None and self._current_request.content.at_eof())

    def _holds_part_of_head(self) -> bool:
        """Whether the parser has a part of a head; one of a pipelined request is not seen before. The parser cannot be
        used afterwards: what would end any head is given to it."""
        if self._parser is None:
            return False
        try:
            messages, _, _ = self._parser.feed_data(b"\r\n\r\n")
        except HttpProcessingError:
            return True
        return bool(messages)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do what aiohttp does, but only if reading is paused: a body asks for it after every read."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    @property
    def is_draining(self) -> bool:
        return self._server.is_draining

    @property
    def is_idle(self) -> bool:
        """True if it waits for a request, or for the rest of a request's head."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def has_request(self) -> bool:
        """True if a request, or a part of one, has arrived and is not answered."""
        return self._request_in_progress or self._head_begun or bool(self._messages)

    def log_access(self, request: BaseRequest, response: StreamResponse, time: float | None) -> None:
        """Close the connection after the response if the server is draining. There is no access log; this is the last
        that aiohttp calls with a response, before it looks whether the connection stays open."""
        if self._server.is_draining:
            response.force_close()

    def _process_keepalive(self) -> None:
        """Answer a head that takes too long; aiohttp would only close the connection."""
        late = asyncio.get_running_loop().time() >= self._next_keepalive_close_time
        if late and self.is_idle and (self._head_begun or self._holds_part_of_head()):
            text = "the head of the request did not come in time"
            self._reject(Fault("request_timeout", text, code="request_timeout"))
        else:
            super()._process_keepalive()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """Answer what the parser rejected, or an exception that nothing handled."""
        if self.transport is None or request.writer.output_size > 0:
            raise ConnectionResetError("too late for an answer")
        if status >= 500 and not isinstance(exc, Fault):
            self._application.log_defect(exc)
        response = self._application.reject(request, _to_fault(status, exc))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Use the application's log, which masks secrets."""
        error = kwargs.get("exc_info")
        if self.transport is not None and not isinstance(error, RequestPayloadError):
            self._application.log_defect(error)


class _Request(BaseRequest):
    """One request. Its response asks `keep_alive` whether the connection stays open."""

    @property
    def keep_alive(self) -> bool:
        return super().keep_alive and not cast(_Connection, self.protocol).is_draining


def _create_request(
    message: Any, payload: Any, protocol: RequestHandler, writer: Any, task: asyncio.Task[None]
) -> BaseRequest:
    loop = asyncio.get_running_loop()
    return _Request(_ERROR if message is ERROR else message, payload, protocol, writer, task, loop)


def _to_error(fault: Fault) -> _ErrInfo:
    """What aiohttp has in place of a request that its parser rejects."""
    return _ErrInfo(status=fault.status, exc=fault, message=fault.message)


def _to_fault(status: int, exc: BaseException | None) -> Fault:
    """The fault for what the parser rejected."""
    if isinstance(exc, Fault):
        return exc
    if status >= 500:
        return Fault("internal", "something went wrong in the proxy", code="internal_error")
    if isinstance(exc, LineTooLong):
        if isinstance(exc.args[0], bytearray):  # the parser keeps the address in one of these, header lines in bytes
            return Fault("invalid_request", "the address is too long", status=414, code="uri_too_long")
        return Fault("invalid_request", "a header is longer than 8190 bytes", status=431, code="headers_too_large")
    if exc is not None and exc.args[:1] == ("Too many headers received",):
        return Fault(
            "invalid_request", f"there are more than {_MOST_HEADERS} headers", status=431, code="headers_too_large"
        )
    if exc is not None and _DUPLICATE.search(str(exc)):
        return Fault("invalid_request", "a header that may occur once occurs twice", code="bad_http")
    return Fault("invalid_request", "this is not valid HTTP/1.1", code="bad_http")
