"""The server on a real socket: responses of one write, and bodies that are larger than its buffers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.aiohttp_responses import SingleWriteResponse
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.write_turns import find_write_turns

_SMALL, _LARGE = 1024, 8 * 1024 * 1024


class CountingApplication:
    """Answers with the number of bytes in the body, after a call of `on_answer`. It reads large bodies slowly."""

    on_answer: Callable[[], object] = staticmethod(lambda: None)

    async def handle(self, request: BaseRequest) -> StreamResponse:
        size = 0
        while part := await request.content.readany():
            size += len(part)
            if size > _SMALL:
                await asyncio.sleep(0)
        self.on_answer()
        return SingleWriteResponse(200, str(size).encode(), {"X-Of": "one write"})

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        return Response(status=fault.status)

    def log_defect(self, error: BaseException | None) -> None:
        raise AssertionError(error)


@pytest.fixture
def application() -> CountingApplication:
    return CountingApplication()


@pytest.fixture(params=[0, 100], ids=["few", "many"])
async def server(request: pytest.FixtureRequest, application: CountingApplication) -> HttpServer:
    """A server that answers few requests, or many others at the same time, so that what it writes waits for a turn."""
    find_write_turns(asyncio.get_running_loop()).in_progress = request.param
    return HttpServer(application, 5.0)


@pytest.fixture
async def port(server: HttpServer) -> AsyncIterator[int]:
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()
    await server.shutdown(1.0)


async def exchange(port: int, *requests: bytes) -> bytes:
    """What one connection answers before it ends, or before it has been silent for a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    for request in requests:
        writer.write(request)
        await writer.drain()
        received += await reader.readuntil(b"\r\n\r\n")
        received += await reader.readexactly(int(received.rpartition(b"Content-Length: ")[2].split(b"\r\n")[0]))
    writer.write_eof()
    received += await reader.read()
    writer.close()
    await writer.wait_closed()
    return received


def post(body: bytes, version: bytes = b"1.1", *headers: bytes) -> bytes:
    lines = [b"POST / HTTP/" + version, b"Host: x", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def test_a_connection_stays_open_after_a_response(port: int) -> None:
    received = await exchange(port, post(b"ab"), post(b"abc"))
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert received.count(b"X-Of: one write\r\n") == 2
    assert b"\r\nDate: " in received
    assert b"Connection" not in received
    assert received.endswith(b"\r\n\r\n3")


@pytest.mark.parametrize(
    ("version", "header", "connection"),
    [
        (b"1.1", b"Connection: close", b"Connection: close\r\n"),
        (b"1.0", b"Connection: keep-alive", b"Connection: keep-alive\r\n"),
        (b"1.0", b"X-Other: 1", b""),
    ],
)
async def test_the_response_says_what_happens_to_the_connection(
    port: int, version: bytes, header: bytes, connection: bytes
) -> None:
    received = await exchange(port, post(b"ab", version, header))
    assert received.startswith(b"HTTP/" + version + b" 200 OK\r\n")
    assert received.count(b"Connection") == received.count(connection or b"Connection:") == bool(connection)


async def test_requests_that_come_together_are_answered_in_their_order(port: int) -> None:
    """The last one closes the connection, after its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post(b"a"))  # its head is known afterwards
    assert await reader.readuntil(b"\r\n\r\n1")
    bodies = [b"a" * size for size in (2, 33, 444)]
    writer.write(b"".join(map(post, bodies)) + post(b"a" * 5, b"1.1", b"Connection: close"))
    received = await asyncio.wait_for(reader.read(), 5)
    assert re.findall(rb"\r\n\r\n(\d+)", received.replace(b"HTTP", b" HTTP")) == [b"2", b"33", b"444", b"5"]
    writer.close()


@pytest.mark.parametrize("is_idle", [True, False])
async def test_a_connection_that_is_closed_gets_what_waits_for_it(
    application: CountingApplication, server: HttpServer, port: int, is_idle: bool
) -> None:
    loop = asyncio.get_running_loop()
    application.on_answer = lambda: loop.call_soon(server.close_idle_connections) if is_idle else close_all(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post(b"ab"))
    assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"\r\n\r\n2")
    writer.close()


def close_all(server: HttpServer) -> None:
    for connection in server.connections:
        connection.close()


async def test_a_body_larger_than_the_buffers_arrives_whole(port: int) -> None:
    """Reading is paused and resumed many times."""
    assert (await exchange(port, post(b"x" * _LARGE))).endswith(str(_LARGE).encode())


async def test_while_draining_every_response_closes_its_connection(server: HttpServer, port: int) -> None:
    server.drain()
    received = await exchange(port, post(b"ab"))
    assert b"\r\nConnection: close\r\n" in received
    assert received.endswith(b"\r\n\r\n2")


async def test_while_draining_idle_connections_are_closed(server: HttpServer, port: int) -> None:
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    (idle, _), (used, used_writer), (begun, begun_writer) = connections
    used_writer.write(post(b"ab"))
    assert await used.readuntil(b"\r\n\r\n2")
    whole = post(b"abc")
    begun_writer.write(whole[:10])
    await wait_until(server.has_requests)
    server.drain()
    server.close_idle_connections()
    assert await asyncio.wait_for(idle.read(), 5) == await asyncio.wait_for(used.read(), 5) == b""
    assert server.has_requests()
    begun_writer.write(whole[10:])
    assert (await asyncio.wait_for(begun.read(), 5)).endswith(b"\r\n\r\n3")
    await wait_until(lambda: not server.connections)
    assert not server.has_requests()
    for _, writer in connections:
        writer.close()


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():  # noqa: ASYNC110 - it is a state, not an event
            await asyncio.sleep(0)
