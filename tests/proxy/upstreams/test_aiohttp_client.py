"""The HTTP/1.1 client on its own: heads, bodies, and which connections are used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from dragoman.proxy.http.write_turns import find_write_turns
from dragoman.proxy.upstreams.aiohttp_client import Connector, HttpClient, HttpResponse
from dragoman.proxy.upstreams.whole_reply import WholeReply
from tests.proxy.scripted_upstream import StartUpstream, Upstream

HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 1024 * 1024

Connect = Callable[..., HttpClient]


@pytest.fixture(params=[0, 100], ids=["few", "many"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Makes clients of a proxy that answers few requests, or many, so that what it writes waits for a turn."""
    find_write_turns(asyncio.get_running_loop()).in_progress = request.param
    clients: list[HttpClient] = []

    def make(upstream: Upstream, idle: float = 10) -> HttpClient:
        url = URL(f"http://127.0.0.1:{upstream.port}/base")
        clients.append(HttpClient(url, aiohttp.TCPConnector(limit=0), 5, idle=idle))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


async def send(client: HttpClient, body: bytes = b"{}") -> HttpResponse:
    return await client.send(HEAD % len(body), body)


async def body_of(response: HttpResponse) -> bytes:
    parts = []
    while part := await response.content.readany():
        parts.append(part)
    return b"".join(parts)


async def asked(client: HttpClient, body: bytes = b"{}") -> bytes:
    return await body_of(await send(client, body))


async def test_a_request_goes_out_as_it_was_written(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK, "keep")
    client = connect(up)
    assert client.host == f"127.0.0.1:{up.port}"
    response = await send(client)
    assert (response.status, response.headers["content-length"]) == (200, "2")
    assert up.requests == [HEAD % 2 + b"{}"]


BODIES = {
    "of known length": (OK, "keep"),
    "in chunks": (CHUNKED + b"1\r\no\r\n", 0.01, b"1\r\nk\r\n0\r\n\r\n", "keep"),
    "until the connection ends": (b"HTTP/1.1 200 OK\r\n\r\no", 0.01, b"k"),
    "of HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nok",),
    "behind interim heads": (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", OK, "keep"),
}


@pytest.mark.parametrize("kind", BODIES)
async def test_bodies(connect: Connect, upstream: StartUpstream, kind: str) -> None:
    up = await upstream(*BODIES[kind])
    client = connect(up)
    assert [await asked(client) for _ in range(2)] == [b"ok", b"ok"]
    assert up.connections == (1 if "keep" in BODIES[kind] else 2)


async def test_no_body_at_all(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(b"HTTP/1.1 204 No Content\r\n\r\n", "keep")
    client = connect(up)
    assert [await asked(client) for _ in range(2)] == [b"", b""]
    assert up.connections == 1


async def test_a_connection_that_is_to_be_closed_is_not_used_again(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"), "keep")
    client = connect(up)
    assert [await asked(client) for _ in range(2)] == [b"ok", b"ok"]
    assert up.connections == 2


async def test_a_large_body_arrives_whole(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK, "keep")
    body = bytes(range(256)) * 4 * 1024 * 8
    assert await asked(connect(up), body) == b"ok"
    assert up.requests == [HEAD % len(body) + body]


async def test_an_answer_to_a_request_that_is_not_sent_yet(connect: Connect) -> None:
    """The answer counts; what is left of the request is not, and the connection with it."""
    connections = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await closed.wait()
        writer.close()

    closed = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    client = connect(server)
    for _ in range(2):
        response = await send(client, b"x" * 64 * MIB)
        assert (response.status, await body_of(response)) == (413, b"no")
    assert len(connections) == 2
    closed.set()
    server.close()


async def test_bytes_that_come_unasked_spoil_a_pooled_connection(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK, 0.02, OK.replace(b"ok", b"no"), "keep")
    client = connect(up)
    assert await asked(client) == b"ok"
    await asyncio.sleep(0.1)
    for _ in range(2):
        try:
            assert await asked(client) == b"ok"
        except aiohttp.ServerDisconnectedError:
            continue  # nothing was sent on it
        break
    assert up.connections == 2


async def test_switching_protocols_is_no_answer(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "hang")
    with pytest.raises(HttpProcessingError):
        await send(connect(up))
    await asyncio.wait_for(up.closed.wait(), 5)


@pytest.mark.parametrize("leave", ["before the head", "in the body"])
async def test_whoever_leaves_closes_the_connection(connect: Connect, upstream: StartUpstream, leave: str) -> None:
    head = [] if leave == "before the head" else [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"]
    up = await upstream(*head, "hang")
    client = connect(up)
    if head:
        response = await send(client)
        response.close()
        response.close()
    else:
        task = asyncio.ensure_future(send(client))
        await asyncio.wait_for(up.asked.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.wait_for(up.closed.wait(), 5)


async def test_an_idle_connection_is_used_again_until_it_is_too_old(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK, "keep")
    client = connect(up, idle=0.2)
    assert [await asked(client) for _ in range(3)] == [b"ok"] * 3
    assert up.connections == 1
    await asyncio.wait_for(up.closed.wait(), 5)
    assert await asked(client) == b"ok"
    assert up.connections == 2


async def test_an_idle_connection_that_received_something_is_not_used_again(
    connect: Connect, upstream: StartUpstream
) -> None:
    up = await upstream(OK, 0.05, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", "keep")
    client = connect(up)
    assert await asked(client) == b"ok"
    await asyncio.sleep(0.2)
    assert await asked(client) == b"ok"
    assert up.connections == 2


async def test_closing_a_client_closes_its_idle_connections(connect: Connect, upstream: StartUpstream) -> None:
    up = await upstream(OK, "keep")
    client = connect(up)
    assert await asked(client) == b"ok"
    await client.close()
    await asyncio.wait_for(up.closed.wait(), 5)


async def test_nobody_there(
    connect: Connect, upstream: StartUpstream, unused_tcp_port_factory: Callable[[], int]
) -> None:
    up = await upstream(OK)
    up.port = unused_tcp_port_factory()
    with pytest.raises(aiohttp.ClientConnectorError):
        await send(connect(up))


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 8000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n7a1200\r\n"]
)
async def test_of_a_body_that_nobody_reads_little_is_taken(upstream: StartUpstream, framing: bytes) -> None:
    """The transport alone would read 256 kB at once."""
    up = await upstream(b"HTTP/1.1 200 OK\r\n" + framing + b"x" * 8_000_000)
    client = HttpClient(URL(f"http://127.0.0.1:{up.port}"), Connector(), 5, idle=10)
    response = await send(client)
    while not response.content._protocol._reading_paused:  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(0)
    assert response.content.total_bytes <= 64 * 1024
    assert len(await response.content.readexactly(8_000_000)) == 8_000_000
    response.close()
    await client.close()


async def test_a_connection_is_not_used_again_if_a_response_comes_before_the_request_is_sent(
    upstream: StartUpstream,
) -> None:
    up = await upstream(OK, "keep")
    loop = asyncio.get_running_loop()
    turns = find_write_turns(loop)
    client = HttpClient(URL(f"http://127.0.0.1:{up.port}/"), Connector(limit=0), 5)
    assert await asked_whole(client) == b"ok"
    (connection,) = connections = [one for one, _ in client._idle._waiting]
    turns.in_progress = 100
    task = asyncio.create_task(asked_whole(client))
    await asyncio.sleep(0)  # the request waits for the next turn
    protocol = connection.protocol
    assert protocol is not None and up.requests[1:] == []
    protocol.data_received(OK.replace(b"ok", b"no"))
    assert await task == b"no"
    assert len(client._idle) == 0
    assert connections[0].closed
    await client.close()


async def asked_whole(client: HttpClient) -> bytes:
    reply = await client.send(HEAD % 2, b"{}")
    assert isinstance(reply, WholeReply)
    return reply.body
