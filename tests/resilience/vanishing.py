"""Clients that vanish at a random byte of their request or of the response, and what a proxy has left of them."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.server.lifecycle import RunningProxy
from dragoman.proxy.upstreams.http import HttpUpstream

__all__ = ["Leftovers", "draw_vanishing", "find_leftovers", "vanish"]

Way = Literal["close", "reset", "half-close"]

_RESET = struct.pack("ii", 1, 0)
_ADDRESSES = {
    "/v1/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "/v1/responses": lambda text: {"input": text},
    "/v1/completions": lambda text: {"prompt": text},
    "/serving-endpoints/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "/chat/completions?api-version=2024-05-01-preview": lambda text: {"messages": [{"role": "user", "content": text}]},
}
_BEHAVIOURS = ("stall", "slow(delay=0.005)", "hang", "hang-after-headers", "text")


@dataclass(frozen=True)
class Vanishing:
    """A request, how many of its bytes are sent, how many bytes of the response are read, and how the client goes."""

    request: bytes
    sent: int
    read: int
    way: Way


def draw_vanishing(chance: random.Random) -> Vanishing:
    """Half of the clients go in the middle of the request, half in the middle of the response."""
    path, write = chance.choice(list(_ADDRESSES.items()))
    text = f"fake:{chance.choice(_BEHAVIOURS)} {'x' * chance.choice((0, 10, 100_000))}"
    body = json.dumps({"model": "m", **write(text), "stream": chance.random() < 0.7}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    request = head.encode() + b"\r\n" + body
    sent = chance.randrange(len(request)) if chance.random() < 0.5 else len(request)
    read = 0 if sent < len(request) else int(chance.expovariate(1 / 800))
    return Vanishing(request, sent, read, chance.choice(("close", "reset", "half-close")))


async def vanish(port: int, plan: Vanishing) -> None:
    """Play one client. If so many bytes do not come within 0.3 s, it goes earlier."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(plan.request[: plan.sent])
        await writer.drain()
        async with asyncio.timeout(0.3):
            await reader.readexactly(plan.read)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        pass  # it goes at this byte then
    try:
        if plan.way == "half-close":
            writer.write_eof()
            async with asyncio.timeout(10):
                while await reader.read(65536):
                    pass
        elif plan.way == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
    except OSError:
        pass  # the proxy was faster
    finally:
        writer.close()


@dataclass(frozen=True)
class Leftovers:
    """What is there because of requests: exchanges, client connections, leased upstream connections, requests that the
    upstream still answers, and tasks by name."""

    exchanges: int
    clients: int
    upstreams: int
    answering: int
    tasks: Counter[str]


def find_leftovers(proxy: RunningProxy, fake: FakeProvider) -> Leftovers:
    """Look into a proxy of this process."""
    clients = [upstream._client for upstream in proxy.upstreams if isinstance(upstream, HttpUpstream)]
    kept_alive = {"RequestHandler.start": len(fake._http.connections)}  # each is a task of the fake
    names = (getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks())
    return Leftovers(
        exchanges=proxy.request_count,
        clients=len(proxy._server.connections),
        upstreams=sum(len(one._connector._acquired) - len(one._idle) for one in clients),
        answering=len(fake._tasks),
        tasks=Counter(names) - Counter(kept_alive),
    )
