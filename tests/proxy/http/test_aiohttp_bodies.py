"""What aiohttp keeps for a body is replaced by something smaller, and bodies are read as before."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader

from dragoman.proxy.http.aiohttp_bodies import ShortQueue, forget_chunks, take_available, take_rest


def open_body(*parts: bytes) -> StreamReader:
    loop = asyncio.get_running_loop()
    body = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    for part in parts:
        body.feed_data(part)
    return body


async def test_a_body_whose_chunks_are_forgotten_keeps_what_has_arrived() -> None:
    body = open_body(b"a", b"b")
    forget_chunks(body)
    assert not isinstance(body._buffer, deque)
    body.feed_data(b"c")
    assert take_available(body) == b"abc"
    body.feed_data(b"d")
    assert take_available(body) == b"d"
    body.feed_data(b"efg")
    assert (await body.read(1), await body.readany()) == (b"e", b"fg")
    body.feed_eof()
    assert (await body.readany(), body.at_eof()) == (b"", True)


async def test_a_body_that_was_taken_as_a_whole_is_empty_and_holds_nothing() -> None:
    first, second = open_body(b"all"), open_body(b"all")
    for body in (first, second):
        body.feed_eof()
        assert take_rest(body) == b"all"
        assert (take_rest(body), await body.readany(), body.at_eof()) == (None, b"", True)
        with pytest.raises(AttributeError):
            body._buffer.append(b"more")
    assert first._buffer is second._buffer


def test_a_short_queue_gives_the_first_item_first() -> None:
    queue = ShortQueue([1, 2])
    queue.append(3)
    queue.appendleft(0)
    assert [queue.popleft() for _ in range(4)] == [0, 1, 2, 3]
    assert not queue
