"""The client's side of a stream: one head, whoever sends it."""

from __future__ import annotations

import asyncio
import time

from aiohttp import ClientSession, web

from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.stream_response import EventStreamResponse

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
