"""The replies of a fake: a status, headers, and steps that are played in order.

The head is sent with the first bytes. A reply that begins with `Hang` therefore sends nothing at all, and one that
begins with `Reset` or `Close` ends the connection without a reply.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

__all__ = ["Close", "Hang", "Pause", "Reply", "Reset", "Step", "play"]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more, and keep the connection open until the client leaves."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Abort the connection with a TCP reset."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection cleanly before the end of the HTTP message."""


Step: TypeAlias = bytes | Pause | Hang | Reset | Close


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. With `raw`, the steps include the head and need not be HTTP."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: Iterable[Step] = ()
    raw: bool = False


async def play(reply: Reply, request: web.BaseRequest) -> web.StreamResponse:
    """Send a reply to the client of that request. Raises ConnectionError if the client has left."""
    match reply.steps:
        case (bytes(body),) if not reply.raw:
            return web.Response(status=reply.status, headers=reply.headers, body=body)
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    for step in reply.steps:
        match step:
            case bytes():
                await _send_bytes(step, response, request, reply.raw)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Hang():
                await asyncio.Event().wait()
            case Reset() | Close():
                return _end_connection(response, request, abrupt=isinstance(step, Reset))
    return _end_connection(response, request, abrupt=False) if reply.raw else response


async def _send_bytes(data: bytes, response: web.StreamResponse, request: web.BaseRequest, raw: bool) -> None:
    if raw:
        _transport(request).write(data)
    elif not response.prepared:
        await response.prepare(request)
    if data and not raw:
        await response.write(data)
    await asyncio.sleep(0)


def _end_connection(response: web.StreamResponse, request: web.BaseRequest, *, abrupt: bool) -> web.StreamResponse:
    """Close the connection directly, so that aiohttp sends nothing more."""
    transport = _transport(request)
    response.force_close()
    if abrupt:
        at_once = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        transport.abort()
    else:
        transport.close()
    return response


def _transport(request: web.BaseRequest) -> asyncio.Transport:
    if request.transport is None:
        raise ConnectionResetError("the client has left")
    return request.transport
