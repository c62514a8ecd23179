"""What arrives of a body is given to a function in the connection's own callback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from yarl import URL

from dragoman.proxy.upstreams.aiohttp_client import Connector, HttpClient, HttpResponse
from tests.proxy.scripted_upstream import StartUpstream, Upstream

HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


Ask = Callable[..., Awaitable[HttpResponse]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """Sends a request, and returns the response; `kind` makes the connections."""
    clients: list[HttpClient] = []

    async def send(upstream: Upstream, kind: type[aiohttp.TCPConnector] = Connector) -> HttpResponse:
        clients.append(HttpClient(URL(f"http://127.0.0.1:{upstream.port}/"), kind(limit=0), 5))
        return await clients[-1].send(HEAD, b"{}")

    yield send
    for client in clients:
        await client.close()


async def test_each_piece_is_taken_while_the_caller_sleeps(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a"), 0.01, chunk(b"b"), 0.01, chunk(b"c") + END, "keep")
    taken: list[tuple[bytes, asyncio.Task[object] | None]] = []

    def take(data: bytes) -> bool:
        taken.append((data, asyncio.current_task()))
        return True

    response = await ask(up)
    await response.deliver(take)
    assert taken == [(b"a", None), (b"b", None), (b"c", None)], "no task runs meanwhile"
    assert response.content.at_eof()


async def test_chunks_of_one_read_are_one_piece(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a") + chunk(b"b") + chunk(b"c") + END, "keep")
    taken: list[bytes] = []
    await (await ask(up)).deliver(lambda data: taken.append(data) is None)
    assert b"".join(taken) == b"abc"
    assert len(taken) == 1


async def test_who_takes_no_more_leaves_the_rest(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a"), 0.01, chunk(b"b") + END, "keep")
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        return False

    response = await ask(up)
    await response.deliver(take)
    assert taken == [b"a"]
    assert await response.content.read() == b"b"


async def test_a_lost_connection_ends_it(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a"))
    taken: list[bytes] = []
    response = await ask(up)
    await response.deliver(lambda data: taken.append(data) is None)
    assert taken == [b"a"]
    with pytest.raises(aiohttp.ClientPayloadError):
        await response.content.readany()
    response.close()


async def test_what_the_function_raises_reaches_the_caller(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a"), 1, END)

    def take(data: bytes) -> bool:
        raise ZeroDivisionError

    response = await ask(up)
    with pytest.raises(ZeroDivisionError):
        await response.deliver(take)
    response.close()


async def test_a_caller_that_is_cancelled_takes_nothing_more(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a"), 0.1, chunk(b"b") + END, "keep")
    taken: list[bytes] = []
    response = await ask(up)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await response.deliver(lambda data: taken.append(data) is None)
    assert await response.content.read() == b"b"
    assert taken == [b"a"]


async def test_more_than_the_parser_holds_comes_in_order(ask: Ask, upstream: StartUpstream) -> None:
    """The parser pauses when its buffer is full, and goes on while bytes are taken."""
    parts = [bytes([number % 251]) * 3_000 for number in range(200)]
    up = await upstream(CHUNKED + b"".join(map(chunk, parts)) + END, "keep")
    taken: list[bytes] = []
    await (await ask(up)).deliver(lambda data: taken.append(data) is None)
    assert b"".join(taken) == b"".join(parts)


async def test_a_body_that_has_ended_is_left_to_be_read(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED + chunk(b"a") + b"0\r\nTrailer: x\r\n\r\n", "keep")
    response = await ask(up)
    await response.deliver(lambda data: pytest.fail("there is no connection any more"))
    assert await response.content.read() == b"a"


async def test_connections_of_another_kind_deliver_nothing(ask: Ask, upstream: StartUpstream) -> None:
    up = await upstream(CHUNKED, 0.01, chunk(b"a") + END, "keep")
    response = await ask(up, aiohttp.TCPConnector)
    await response.deliver(lambda data: pytest.fail("it is not ours"))
    assert await response.content.read() == b"a"
