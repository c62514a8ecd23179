"""The HTTP server: aiohttp's low-level server, with the defaults of a gateway.

This module, `aiohttp_connection`, `aiohttp_request`, `aiohttp_bodies`, `known_heads` and `parser_errors` alone use
parts of aiohttp's server that aiohttp does not document; `test_aiohttp_server_internals.py` names them, and the
releases that have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict
from yarl import URL

from .aiohttp_connection import Connection, Connections
from .application import Application
from .known_heads import KnownHeads
from .large_reads import ReadTurns
from .parser_errors import MOST_HEADERS

__all__ = ["HttpServer", "create_inner_request", "send_continue"]


class HttpServer(Connections):
    """Creates a protocol for each connection. `header_timeout` limits, in seconds, how long a request's head may
    take. Connections beyond `most_connections` get 503."""

    def __init__(self, application: Application, header_timeout: float, most_connections: int = 10_000) -> None:
        self.configure(header_timeout, most_connections)
        super().__init__(application.handle, handler_cancellation=True)
        self._application = application
        self.is_draining = False
        self.known_heads = KnownHeads()
        self.read_turns = ReadTurns()

    def configure(self, header_timeout: float, most_connections: int) -> None:
        """Set the limits of new connections."""
        self._options: dict[str, Any] = {
            "access_log": None,
            "keepalive_timeout": header_timeout,
            "max_headers": MOST_HEADERS,
            "auto_decompress": False,
        }
        self.most_connections = most_connections

    def __call__(self) -> RequestHandler:
        return Connection(self._application, self, **self._options)

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

    def _list(self) -> list[Connection]:
        return [connection for connection in self.connections if isinstance(connection, Connection)]


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
