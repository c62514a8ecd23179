"""The listening socket: what the kernel may hold for a client that reads nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import cast

import pytest
import uvloop

from dragoman.proxy.http.listener import MOST_UNSENT, listen
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream

_OPTION = getattr(socket, "TCP_NOTSENT_LOWAT", 0)

pytestmark = pytest.mark.skipif(not _OPTION, reason="this system does not bound what is unsent")


class _Accepted(asyncio.Protocol):
    """Says what an accepted socket has."""

    def __init__(self, found: asyncio.Future[int]) -> None:
        self.found = found

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast(socket.socket, transport.get_extra_info("socket"))
        self.found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, _OPTION))
        cast(asyncio.Transport, transport).abort()


async def _connect() -> int:
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    listener = await listen(lambda: _Accepted(found), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    option = await found
    writer.close()
    listener.close()
    return option


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_accepted_sockets_bound_what_is_unsent(run: Callable[[Coroutine[None, None, int]], int]) -> None:
    assert run(_connect()) == MOST_UNSENT


async def test_the_proxy_listens_so(proxy: StartProxy, upstream: StartUpstream) -> None:
    listener = (await proxy(await upstream())).running._listener
    assert {one.getsockopt(socket.IPPROTO_TCP, _OPTION) for one in listener.sockets} == {MOST_UNSENT}
