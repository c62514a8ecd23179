"""Many streams at once: every event arrives once, in its order, in its own stream."""

from __future__ import annotations

import asyncio
import io

import pytest

from dragoman.proxy.server.lifecycle import start

from .conftest import configure
from .paced import Chain, ChainedUpstream, follow_stream

PATHS = ("/v1/chat/completions", "/serving-endpoints/chat/completions", "/mindie/v1/chat/completions")


@pytest.mark.parametrize("path", PATHS)
async def test_a_hundred_streams_lose_double_and_reorder_nothing(path: str) -> None:
    upstream = ChainedUpstream(events=30, interval=0.02)
    server = await upstream.start()
    proxy = await start(configure(f"http://127.0.0.1:{upstream.port}/v1"), log_stream=io.BytesIO())
    found = await asyncio.gather(*(follow_stream(proxy.port, f"stream-{n}", 30, path) for n in range(100)))
    assert [problem for problem in found if problem] == []
    assert upstream.open == 0
    await proxy.stop()
    server.close()


def test_a_chain_notices_what_is_wrong() -> None:
    one, other = Chain("one"), Chain("other")
    steps = [one.step() for _ in range(3)]
    assert len({*steps, *(other.step() for _ in range(3))}) == 6
    again = Chain("one")
    assert again.step() == steps[0]
    assert Chain("one", 1).step() != steps[1], "the hash covers all before"
