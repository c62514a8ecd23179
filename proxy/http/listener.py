"""Listening sockets, which bound what the kernel holds for a client that does not read."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable

__all__ = ["MOST_UNSENT", "listen", "write_local_url", "write_url"]

MOST_UNSENT = 16 * 1024
"""Bytes that the kernel takes for a connection before it has sent them. A fixed send buffer would also limit what is on
its way, and so how fast a client far away gets a large reply; by itself the buffer grows to 4 MB."""

_BACKLOG = 1024
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # of the addresses that mean all interfaces


async def listen(create_protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.Server:
    """Listen at an address. The accepted sockets have the options of the listening one. Raises OSError."""
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(create_protocol, host, port, backlog=_BACKLOG, start_serving=False)
    except OSError as error:
        if error.errno is not None:
            raise
        number = errno.EADDRNOTAVAIL  # the only one that asyncio raises without its number, since Python 3.13
        raise OSError(number, os.strerror(number)) from error
    if option := getattr(socket, "TCP_NOTSENT_LOWAT", None):  # Linux and macOS have it
        for one in listener.sockets:
            one.setsockopt(socket.IPPROTO_TCP, option, MOST_UNSENT)
    await listener.start_serving()
    return listener


def write_url(host: str, port: int) -> str:
    """The address of a listener."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def write_local_url(host: str, port: int) -> str:
    """The address of a listener for clients on this machine."""
    return write_url(_LOOPBACK.get(host, host), port)
