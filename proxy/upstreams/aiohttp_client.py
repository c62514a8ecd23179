"""The HTTP/1.1 client: it sends a request as bytes, and returns the parsed head and the body's stream of bytes.

Theory of operation. aiohttp does the hard part: its connector resolves, opens, secures and closes connections, and its
protocol parses responses and pauses an upstream that sends faster than we read. aiohttp's ClientSession is not used:
cookies, redirects, middlewares, timers and a writing task for each request cost more than everything else.

    connect   an idle connection (`IdleConnections`) or a new one
    send      head and body in one write; the transport keeps what the upstream does not take at once
    reply     one that comes in a single read is read at once (`whole_reply`), every other one by aiohttp's parser
    head      the first one that is not interim (1xx) is the answer's; it may come before the request is sent. After
              16 interim ones, or as many unread messages, the upstream is given up
    body      when its last byte was parsed the connection is idle, unless the request is not sent by then
    close     before the end of the body, this closes the connection

Through an HTTP proxy, https goes by a tunnel that the connector asks for (CONNECT), and every request of plain http
goes to the proxy itself: its target is then a whole address, and it carries the credentials for the proxy.

An idle connection that has received unexpected bytes is not used again. This module never sends a request twice:
`routing.retry_table` decides whether a failed request is tried again.

This module alone uses parts of aiohttp's client that aiohttp does not document; `test_aiohttp_client_internals.py`
names them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from dragoman.adapters.call import Headers
from dragoman.proxy.http.aiohttp_bodies import ShortQueue, forget_chunks, take_available

from .idle_connections import IdleConnections
from .whole_reply import WholeReply, read_whole_reply

__all__ = [
    "Connector",
    "HttpClient",
    "HttpProcessingError",
    "HttpResponse",
    "NewConnectionLost",
    "split_credentials",
]

_JOINED = 64 * 1024  # bytes; a body up to this size is copied behind its head, for one write
_READ = 16 * 1024  # bytes that are read at once, and that a body holds before reading pauses
_SWITCHING = 101
_MOST_INTERIM = 16
_PARAMETERS: Any = {"read_until_eof": True, "auto_decompress": False, "read_bufsize": _READ // 2}  # of responses


class NewConnectionLost(aiohttp.ServerDisconnectedError):
    """A connection broke that had no request before. Unlike one of the pool, it was not closed for being idle, so the
    upstream may have worked on the request."""


class HttpClient:
    """The connections to one origin. `connector` opens each within `connect_timeout` seconds, through `proxy` if there
    is one, whose address may contain a user and a password. An idle one is kept for `idle` seconds.

    The caller puts `host` into the head that it sends, `target_prefix` before the path, and `proxy_lines` between the
    header lines.
    """

    def __init__(
        self,
        origin: URL,
        connector: aiohttp.BaseConnector,
        connect_timeout: float,
        proxy: URL | None = None,
        idle: float = 15.0,
    ) -> None:
        address, proxy_headers = split_credentials(proxy)
        self._connector = connector
        self._idle = IdleConnections[Connection](idle)
        self._peer = _Peer("POST", origin, loop=asyncio.get_running_loop(), proxy=address, proxy_headers=proxy_headers)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self.host: str = self._peer.headers["Host"]
        is_relayed = address is not None and not self._peer.is_ssl()
        self.target_prefix = str(origin.origin()) if is_relayed else ""
        lines = (f"{name}: {value}\r\n" for name, value in proxy_headers.items())
        self.proxy_lines = "".join(lines) if is_relayed else ""

    async def send(self, head: bytes, body: bytes) -> HttpResponse | WholeReply:
        """Send a request, and return the response as soon as its head is complete. Raises the exceptions of
        `errors.CLIENT_ERRORS`, and CancelledError."""
        connection = self._idle.take()
        is_new = False
        if connection is None:
            connection = await self._connect()
            is_new = isinstance(connection.protocol, _Protocol)  # others lead to processes of the proxy
        try:
            _send_request(connection, head, body)
            protocol = connection.protocol
            if isinstance(protocol, _Protocol) and (reply := await protocol.read_whole()) is not None:
                _release(connection, self._idle)
                return reply
            message, content = await _read_head(connection)
            return HttpResponse(connection, message, content, self._idle)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            connection.close()
            if is_new:
                raise NewConnectionLost from error
            raise
        except BaseException:
            connection.close()
            raise

    async def _connect(self) -> Connection:
        try:
            return await self._connector.connect(self._peer, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error

    async def close(self) -> None:
        """Close all connections."""
        self._idle.close()
        await self._connector.close()


class HttpResponse:
    """A response. `content` is its body as sent: without the framing of chunks, but still compressed."""

    __slots__ = ("_connection", "_idle", "_protocol", "content", "headers", "status")

    def __init__(
        self,
        connection: Connection,
        message: RawResponseMessage,
        content: aiohttp.StreamReader,
        idle: IdleConnections[Connection],
    ) -> None:
        self._connection: Connection | None = connection
        self._protocol = connection.protocol
        self._idle = idle
        self.status = message.code
        self.headers: Headers = message.headers
        self.content = content
        content.on_eof(self._release)

    def close(self) -> None:
        """Close the connection, unless the body has ended. Calling it again does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self.content._eof_callbacks.clear()  # a cycle would keep what has arrived

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        """Give the next bytes of the body to `take` as soon as they are parsed. Returns when `take` returns False, when
        the body has ended or failed, and at once if the connection is not one of ours. Raises what `take` raises."""
        protocol = self._protocol
        if not isinstance(protocol, _Protocol) or self._connection is None:
            return
        delivery = _Delivery(self.content, take)
        protocol.on_progress = delivery.go_on
        try:
            delivery.go_on()
            await delivery.end
        finally:
            protocol.on_progress = None

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _release(connection, self._idle)


def split_credentials(proxy: URL | None) -> tuple[URL | None, dict[str, str]]:
    """The proxy's address without user and password, so that no error shows them, and the headers that contain them."""
    if proxy is None or proxy.user is None:
        return proxy, {}
    return proxy.with_user(None), {"Proxy-Authorization": aiohttp.encode_basic_auth(proxy.user, proxy.password or "")}


class _Delivery:
    """Gives what arrives of a body to a function, until `end` is done."""

    __slots__ = ("_content", "_is_going_on", "_take", "end")

    def __init__(self, content: aiohttp.StreamReader, take: Callable[[bytes], bool]) -> None:
        self._content = content
        self._take = take
        self._is_going_on = False
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def go_on(self) -> None:
        """Give what has arrived. Reading may make the parser go on, which calls this once more meanwhile."""
        if self._is_going_on or self.end.done():
            return
        self._is_going_on = True
        content = self._content
        try:
            while data := take_available(content):
                if not self._take(data):
                    self.end.set_result(None)
                    return
                if not content._buffer:
                    break
            if content._eof or content._exception is not None:
                self.end.set_result(None)
        except Exception as error:  # noqa: BLE001 - raised where the end is awaited
            self.end.set_exception(error)
        finally:
            self._is_going_on = False


class _Protocol(ResponseHandler):
    """aiohttp's protocol, except that it resumes reading only if reading is paused: a body asks for it after every
    read; that it gives up an upstream that sends response after response: nobody waits for more than one, and for
    the few interim ones before it; that it calls `on_progress` when something was received, or nothing will be; and
    that a response which comes in one read is not parsed by aiohttp."""

    on_progress: Callable[[], None] | None = None
    _first_read: asyncio.Future[WholeReply | None] | None = None

    def expect_response(self) -> None:
        """A request is being sent."""
        self._first_read = self._loop.create_future()

    async def read_whole(self) -> WholeReply | None:
        """The response; None if aiohttp parses it, or if there is none: then `read` it. Call it once."""
        return None if self._first_read is None else await self._first_read

    @property
    def should_close(self) -> bool:
        if self._parser is None and self._exception is None:
            return self._should_close or bool(self._tail)
        return super().should_close

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._buffer = cast("deque[Any]", ShortQueue())

    def data_received(self, data: bytes) -> None:
        if self._first_read is not None:
            reply = read_whole_reply(data)
            self._begin_response(reply)
            if reply is not None:
                return
        ResponseHandler.data_received(self, data)
        if self.on_progress is not None:
            self.on_progress()

    def _begin_response(self, reply: WholeReply | None) -> None:
        """The first bytes of a response have come, or none will. aiohttp gets its parser only if it needs one."""
        first, self._first_read = self._first_read, None
        if reply is None:
            self.set_response_params(**_PARAMETERS)
        else:
            self._parser = self._payload = None  # those of the response before
        if first is not None and not first.done():
            first.set_result(reply)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._first_read is not None:
            self._begin_response(None)
        super().connection_lost(exc)
        if self.on_progress is not None:
            self.on_progress()

    def feed_data(self, data: Any, size: int = 0) -> None:
        if len(self._buffer) < _MOST_INTERIM:
            content = data[1]
            if content.__class__ is aiohttp.StreamReader:
                forget_chunks(content)
            super().feed_data(data, size)
        elif not self.should_close:
            self.set_exception(_too_many_responses())
            self.close()

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


class _BoundedReads(asyncio.BufferedProtocol):
    """Between a transport and a `_Protocol`: the transport reads a limited size at once, into a buffer that is used
    again. By itself uvloop reads 256 kB, which a stream would hold as long as its client reads nothing."""

    __slots__ = ("_buffer", "_take", "handler")

    def __init__(self, handler: ResponseHandler, buffer: memoryview) -> None:
        self.handler = handler
        self._buffer = buffer
        self._take = handler.data_received

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(bytes(self._buffer[:nbytes]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.handler.connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.handler.connection_lost(exc)

    def eof_received(self) -> None:
        self.handler.eof_received()

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()


class Connector(aiohttp.TCPConnector):
    """aiohttp's connector, except that the timeout for connecting includes the tunnel through a proxy, and that what
    is read at once is limited."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory: Any = partial(_Protocol, loop=asyncio.get_running_loop())
        self._buffer = memoryview(bytearray(_READ))

    async def _wrap_create_connection(self, *args: Any, **options: Any) -> Any:
        factory, *rest = args

        def create_protocol() -> _BoundedReads:
            return _BoundedReads(factory(), self._buffer)

        transport, protocol = await super()._wrap_create_connection(create_protocol, *rest, **options)
        return transport, cast(_BoundedReads, protocol).handler

    async def _create_proxy_connection(self, req: Any, traces: Any, timeout: Any) -> Any:  # noqa: ASYNC109
        async with asyncio.timeout(timeout.sock_connect):
            return await super()._create_proxy_connection(req, traces, timeout)


class _Peer(aiohttp.ClientRequest):
    """The connector's request for a connection. It never changes, so its key is computed once."""

    @cached_property
    def connection_key(self) -> ConnectionKey:
        return super().connection_key


def _release(connection: Connection, idle: IdleConnections[Connection]) -> None:
    """Keep a connection whose response has ended, unless the request is not sent by then."""
    transport = connection.transport
    if transport is not None and transport.get_write_buffer_size():
        connection.close()
    else:
        idle.put(connection)


def _send_request(connection: Connection, head: bytes, body: bytes) -> None:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    if isinstance(protocol, _Protocol):
        protocol.expect_response()
    else:
        protocol.set_response_params(**_PARAMETERS)
    if len(body) <= _JOINED:
        transport.write(head + body)
    else:
        transport.writelines((head, body))


async def _read_head(connection: Connection) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    protocol = connection.protocol
    if protocol is None:
        raise aiohttp.ServerDisconnectedError
    for _ in range(_MOST_INTERIM + 1):
        message, content = await protocol.read()
        if message.code >= 200:
            return message, content
        if message.code == _SWITCHING:
            raise HttpProcessingError(code=_SWITCHING, message="the upstream switches protocols")
    raise _too_many_responses()


def _too_many_responses() -> HttpProcessingError:
    return HttpProcessingError(message=f"the upstream sends more than {_MOST_INTERIM} interim responses")
