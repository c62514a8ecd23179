"""The HTTP/1.1 client: it sends a request as bytes, and returns the parsed head and the body's stream of bytes.

Theory of operation. aiohttp does the hard part: its connector resolves, opens, secures and closes connections, and its
protocol parses responses and pauses an upstream that sends faster than we read. aiohttp's ClientSession is not used:
cookies, redirects, middlewares, timers and a writing task for each request cost more than everything else.

    connect   an idle connection (`IdleConnections`) or a new one
    send      head and body in one write, which may wait for its turn (`write_turns`); the transport keeps what the
              upstream does not take at once
    reply     one that comes in a single read is read at once (`whole_reply`), every other one by aiohttp's parser
    head      the first one that is not interim (1xx) is the answer's; it may come before the request is sent. After
              16 interim ones, or as many unread messages, the upstream is given up
    body      when its last byte was parsed the connection is idle, unless the request is not sent by then
    close     before the end of the body, this closes the connection

Through an HTTP proxy, https goes by a tunnel that the connector asks for (CONNECT), and every request of plain http
goes to the proxy itself: its target is then a whole address, and it carries the credentials for the proxy.

An idle connection that has received unexpected bytes is not used again. This module never sends a request twice:
`routing.retry_table` decides whether a failed request is tried again.

This module and `aiohttp_protocol` alone use parts of aiohttp's client that aiohttp does not document;
`test_aiohttp_client_internals.py` names them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from dragoman.adapters.call import Headers
from dragoman.proxy.http.large_reads import BoundedReads
from dragoman.proxy.http.write_turns import WriteTurns, find_write_turns

from .aiohttp_protocol import (
    MOST_INTERIM,
    READ_SIZE,
    RESPONSE_PARAMETERS,
    Delivery,
    ResponseProtocol,
    too_many_responses,
)
from .idle_connections import IdleConnections
from .whole_reply import WholeReply

__all__ = [
    "Connector",
    "HttpClient",
    "HttpProcessingError",
    "HttpResponse",
    "NewConnectionLost",
    "split_credentials",
]

_JOINED = 64 * 1024  # bytes; a body up to this size is copied behind its head, for one write
_SWITCHING = 101


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
        loop = asyncio.get_running_loop()
        self._turns = find_write_turns(loop)
        self._peer = _Peer("POST", origin, loop=loop, proxy=address, proxy_headers=proxy_headers)
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
            is_new = isinstance(connection.protocol, ResponseProtocol)  # others lead to processes of the proxy
        try:
            _send_request(connection, head, body, self._turns)
            protocol = connection.protocol
            if isinstance(protocol, ResponseProtocol) and (reply := await protocol.read_whole()) is not None:
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
        if not isinstance(protocol, ResponseProtocol) or self._connection is None:
            return
        protocol.delivery = delivery = Delivery(self.content, take)
        try:
            delivery.go_on()
            await delivery.end
        finally:
            protocol.delivery = None

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _release(connection, self._idle)


def split_credentials(proxy: URL | None) -> tuple[URL | None, dict[str, str]]:
    """The proxy's address without user and password, so that no error shows them, and the headers that contain them."""
    if proxy is None or proxy.user is None:
        return proxy, {}
    return proxy.with_user(None), {"Proxy-Authorization": aiohttp.encode_basic_auth(proxy.user, proxy.password or "")}


class Connector(aiohttp.TCPConnector):
    """aiohttp's connector, except that the timeout for connecting includes the tunnel through a proxy, and that what
    is read at once is limited."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory: Any = partial(ResponseProtocol, loop=asyncio.get_running_loop())
        self._buffer = memoryview(bytearray(READ_SIZE))

    async def _wrap_create_connection(self, *args: Any, **options: Any) -> Any:
        factory, *rest = args

        def create_protocol() -> BoundedReads[ResponseProtocol]:
            return BoundedReads(factory(), self._buffer)

        transport, protocol = await super()._wrap_create_connection(create_protocol, *rest, **options)
        return transport, cast("BoundedReads[ResponseProtocol]", protocol).handler

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


def _send_request(connection: Connection, head: bytes, body: bytes, turns: WriteTurns) -> None:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    if isinstance(protocol, ResponseProtocol):
        protocol.expect_response()
    else:
        protocol.set_response_params(**RESPONSE_PARAMETERS)
    if len(body) <= _JOINED:
        turns.write(transport, head + body)
    else:
        transport.writelines((head, body))


async def _read_head(connection: Connection) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    protocol = connection.protocol
    if protocol is None:
        raise aiohttp.ServerDisconnectedError
    for _ in range(MOST_INTERIM + 1):
        message, content = await protocol.read()
        if message.code >= 200:
            return message, content
        if message.code == _SWITCHING:
            raise HttpProcessingError(code=_SWITCHING, message="the upstream switches protocols")
    raise too_many_responses()
