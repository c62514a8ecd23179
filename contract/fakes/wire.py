"""What a fake sends: a reply is a status, headers, and steps that are played one after the other.

The head of the reply goes out with the first bytes, so a step before them happens before the client has seen anything:
`Hang` first means no answer at all, `Reset` or `Close` first a connection that ends with no reply.
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
    """Send nothing for that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more, and keep the connection until the client leaves."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection off: the client gets a TCP reset."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection in order, but without the end that HTTP owes."""


Step: TypeAlias = bytes | Pause | Hang | Reset | Close


@dataclass(frozen=True, slots=True)
class Reply:
    """`raw` steps are the whole conversation, head included, and need not be HTTP at all."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: Iterable[Step] = ()
    raw: bool = False


async def play(reply: Reply, request: web.BaseRequest) -> web.StreamResponse:
    """Send a reply to the client of that request. Raises ConnectionError where the client has gone."""
    match reply.steps:
        case (bytes(body),) if not reply.raw:
            return web.Response(status=reply.status, headers=reply.headers, body=body)
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    for step in reply.steps:
        match step:
            case bytes():
                await _send(step, response, request, reply.raw)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Hang():
                await asyncio.Event().wait()
            case Reset() | Close():
                return _end(response, request, abrupt=isinstance(step, Reset))
    return _end(response, request, abrupt=False) if reply.raw else response


async def _send(data: bytes, response: web.StreamResponse, request: web.BaseRequest, raw: bool) -> None:
    if raw:
        _transport(request).write(data)
    elif not response.prepared:
        await response.prepare(request)
    if data and not raw:
        await response.write(data)
    await asyncio.sleep(0)


def _end(response: web.StreamResponse, request: web.BaseRequest, *, abrupt: bool) -> web.StreamResponse:
    """Take the connection away from under aiohttp, which then drops what it still had to say."""
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
        raise ConnectionResetError("the client has gone")
    return request.transport
