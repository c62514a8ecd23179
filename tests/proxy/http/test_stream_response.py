"""The client's side of a stream: one head, whoever sends it."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import ClientSession, web
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.stream_response import ClientDisconnected, EventStreamResponse, Pings

HOLD = 0.02


async def told_at_the_last_moment(request: web.BaseRequest) -> web.StreamResponse:
    """The first output comes when the hold has ended, but before the head that goes out alone was sent."""
    down = EventStreamResponse(request, Deadline(), lambda: {"Content-Type": "text/event-stream"}, HOLD, 5)
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    loop.call_later(HOLD / 2, time.sleep, HOLD)  # the loop is busy until both are due
    loop.call_later(HOLD * 0.9, woken.set_result, None)
    await woken
    await down.write(b"data: 1\n\n")
    await asyncio.sleep(HOLD)
    await down.write(b"data: 2\n\n")
    await down.end(broken=False)
    assert down.response is not None
    return down.response


async def test_there_is_one_head_where_the_hold_ends_with_the_first_output() -> None:
    runner = web.ServerRunner(web.Server(told_at_the_last_moment))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        async with ClientSession() as session, session.post(f"http://{host}:{port}/") as answer:
            assert await answer.read() == b"data: 1\n\ndata: 2\n\n"
    finally:
        await runner.cleanup()


async def end_with_the_last_bytes(request: web.BaseRequest) -> web.StreamResponse:
    """Pings come all the time, but not after the end; and nothing else does."""
    pings = Pings(0.001, b": ping\n\n")
    down = EventStreamResponse(request, Deadline(), lambda: {"Content-Type": "text/event-stream"}, HOLD, 5, pings)
    await down.write(b"data: 1\n\n")
    await down.write_last(b"data: 2\n\n")
    await asyncio.sleep(0.01)
    with pytest.raises(ClientDisconnected):
        await down.write(b"data: 3\n\n")
    await down.end(broken=False)
    assert down.bytes_written == 18
    assert down.response is not None
    return down.response


async def test_the_end_goes_with_the_last_bytes() -> None:
    runner = web.ServerRunner(web.Server(end_with_the_last_bytes))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0])
        writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert answer.partition(b"\r\n\r\n")[2] == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
        writer.close()
    finally:
        await runner.cleanup()


class Flood:
    """Writes small events until the client has to read."""

    def __init__(self) -> None:
        self.unsent = 0
        self.waits = asyncio.Event()

    async def handle(self, request: BaseRequest) -> StreamResponse:
        down = EventStreamResponse(request, Deadline(), lambda: {"Content-Type": "text/event-stream"}, HOLD, 5)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        while not self.waits.is_set():
            writing = asyncio.create_task(down.write(b"data: %b\n\n" % (b"x" * 1_000)))
            await asyncio.sleep(0)
            if not writing.done():
                self.unsent = transport.get_write_buffer_size()
                self.waits.set()
            await writing
        await down.end(broken=False)
        assert down.response is not None
        return down.response

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        raise AssertionError(fault)

    def log_defect(self, error: BaseException | None) -> None:
        raise AssertionError(error)


async def test_little_waits_for_a_client_that_does_not_read() -> None:
    """aiohttp alone would collect 64 kB, and as much again in the transport."""
    flood = Flood()
    server = HttpServer(flood, 5.0)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port: int = listener.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    await flood.waits.wait()
    assert 0 < flood.unsent < 8 * 1024
    assert (await reader.read(100)).startswith(b"HTTP/1.1 200 ")
    while await reader.read(100_000):
        pass
    writer.close()
    listener.close()
    await server.shutdown(1.0)
