"""Large bodies are read in small pieces, by one task in each turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.aiohttp_responses import SingleWriteResponse
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.large_body import LargeBody, list_pieces
from dragoman.proxy.http.large_reads import PIECE, BoundedReads, ReadTurns
from dragoman.proxy.http.request_body import LARGE, read_body

LIMIT = 16 * 1024 * 1024
DATA = b"0123456789abcdef" * (4 * 1024 * 1024 // 16)


class PieceApplication:
    """Reads each body, and keeps it with the transport's protocol."""

    def __init__(self) -> None:
        self.bodies: list[bytes | LargeBody] = []
        self.are_bounded: list[bool] = []

    async def handle(self, request: BaseRequest) -> StreamResponse:
        self.bodies.append(await read_body(request, LIMIT, Deadline(asyncio.current_task()), needs_type=False))
        assert request.transport is not None
        self.are_bounded.append(isinstance(request.transport.get_protocol(), BoundedReads))
        return SingleWriteResponse(200, b"ok", {})

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        return Response(status=fault.status)

    def log_defect(self, error: BaseException | None) -> None:
        raise AssertionError(error)


@pytest.fixture
def application() -> PieceApplication:
    return PieceApplication()


@pytest.fixture
async def port(application: PieceApplication) -> AsyncIterator[int]:
    server = HttpServer(application, 60.0)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()
    await server.shutdown(1.0)


async def send(port: int, *bodies: bytes, chunked: bool = False) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in bodies:
        length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
        framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n%b" % (length, framed))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
    writer.close()
    await writer.wait_closed()


async def run_turns(turns: ReadTurns, names: str, rounds: int, order: list[str]) -> None:
    async def read(name: str) -> None:
        for _ in range(rounds):
            await turns.wait()
            order.append(name)

    await asyncio.gather(*map(read, names))


async def test_tasks_read_in_turn() -> None:
    order: list[str] = []
    await run_turns(ReadTurns(), "abc", 3, order)
    assert "".join(order) == "abcabcabc"


async def test_one_task_reads_in_each_turn_of_the_loop_and_others_run_between_two() -> None:
    order: list[str] = []
    reading = asyncio.create_task(run_turns(ReadTurns(), "ab", 20, order))
    reads = 0
    while not reading.done():
        await asyncio.sleep(0)
        assert len(order) - reads <= 1
        reads = len(order)
    assert reads == 40


async def test_a_task_that_is_cancelled_does_not_lose_the_turn() -> None:
    turns, order = ReadTurns(), list[str]()
    tasks = [asyncio.create_task(run_turns(turns, name, 1, order)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert order == ["b", "c"]
    await asyncio.wait_for(turns.wait(), 10)


@pytest.mark.parametrize("chunked", [False, True])
async def test_the_rest_of_a_large_body_comes_in_pieces(
    application: PieceApplication, port: int, chunked: bool
) -> None:
    await send(port, DATA, DATA, chunked=chunked)
    assert application.are_bounded == [True, True]
    for body in application.bodies:
        assert isinstance(body, LargeBody)
        pieces = list(body)
        assert b"".join(pieces) == DATA
        sizes, size = [], 0
        for piece in pieces:
            sizes.append(len(piece) if size >= LARGE else 0)
            size += len(piece)
        assert 0 < max(sizes) <= 2 * PIECE


async def test_a_body_that_is_not_large_is_read_as_before(application: PieceApplication, port: int) -> None:
    await send(port, DATA[:LARGE])
    assert application.bodies == [DATA[:LARGE]]
    assert application.are_bounded == [False]


async def test_small_bodies_behind_a_large_one_are_answered(application: PieceApplication, port: int) -> None:
    await send(port, DATA, b"ab", DATA[:100_000], b"c")
    assert application.bodies[1:] == [b"ab", DATA[:100_000], b"c"]


async def test_what_is_discarded_is_read_in_pieces_too(
    application: PieceApplication, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    wait = ReadTurns.wait

    async def count(self: ReadTurns) -> None:
        waits.append(1)
        await wait(self)

    async def refuse(request: BaseRequest) -> StreamResponse:
        return SingleWriteResponse(200, b"ok", {})

    monkeypatch.setattr(ReadTurns, "wait", count)
    monkeypatch.setattr(application, "handle", refuse)
    await send(port, DATA)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(DATA), DATA))
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await reader.readuntil(b"ok")
    assert await reader.readuntil(b"ok")  # all of the body has been read before
    writer.close()
    assert len(waits) >= len(DATA) // (2 * PIECE) - LARGE // PIECE


def test_a_large_body_is_its_pieces() -> None:
    body = LargeBody((b"ab", b"", b"cde"))
    assert (len(body), b"".join(list_pieces(body))) == (5, b"abcde")
    assert (body.take(), len(body), body.take()) == (b"abcde", 0, b"")
    dropped = LargeBody((b"ab",))
    dropped.drop()
    assert (len(dropped), list(dropped)) == (0, [])
    assert list(list_pieces(b"ab")) == [b"ab"]
