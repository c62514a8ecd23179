"""Requests that no client has sent: a connection of the HTTP server without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from .aiohttp_server import HttpServer
from .application import Application

__all__ = ["serve_without_client"]

_HEADER_TIMEOUT = 10.0


async def serve_without_client(application: Application, request: bytes) -> None:
    """Serve a request, whole and in HTTP/1.1, of a client that reads nothing. It has to ask to close the connection."""
    connection = HttpServer(application, _HEADER_TIMEOUT)()
    transport = _NoClient(connection)
    connection.connection_made(transport)
    connection.data_received(request)
    await transport.closed.wait()


class _NoClient(asyncio.Transport):
    """Discards what is written. `closed` is set when the connection has ended."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"peername": ("the page", 0)})
        self._protocol = protocol
        self._is_closing = False
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Discard the bytes."""

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Discard the bytes."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def pause_reading(self) -> None:
        """Nothing more comes."""

    def resume_reading(self) -> None:
        """Nothing more comes."""

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._end)

    def abort(self) -> None:
        self.close()

    def _end(self) -> None:
        self._protocol.connection_lost(None)
        self.closed.set()
