"""What each response writes, and in how many writes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.http import HttpVersion
from aiohttp.web_request import BaseRequest

from dragoman.proxy.http.aiohttp_responses import ChunkedResponse, SingleWriteResponse
from dragoman.proxy.http.write_turns import find_write_turns


class Wire(asyncio.Transport):
    """Keeps what is written; `is_lost` when the client has left."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_lost = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_lost


@pytest.fixture
def wire() -> Wire:
    return Wire()


def make_request(wire: Wire, version: HttpVersion = HttpVersion11, *, keep_alive: bool = True) -> BaseRequest:
    """What a response asks of a request."""
    protocol = SimpleNamespace(write_turns=find_write_turns(asyncio.get_running_loop()))
    request: Any = SimpleNamespace(version=version, keep_alive=keep_alive, transport=wire, protocol=protocol)
    return cast(BaseRequest, request)


def split(data: bytes) -> tuple[set[str], bytes]:
    """The lines of a head but for the date, and what follows it."""
    head, body = data.split(b"\r\n\r\n", 1)
    return {line for line in head.decode().split("\r\n") if not line.startswith("Date: ")}, body


async def test_the_first_chunk_goes_with_the_head(wire: Wire) -> None:
    response = ChunkedResponse(make_request(wire), {"A": "b"})
    assert wire.writes == []
    await response.write(b"first")
    await response.write(b"0123456789abcdef")
    await response.prepare(make_request(wire))
    await response.write(b"")
    await response.write_eof()
    await response.write_eof()
    first, *others = wire.writes
    assert split(first) == ({"HTTP/1.1 200 OK", "A: b", "Transfer-Encoding: chunked"}, b"5\r\nfirst\r\n")
    assert [data for data in others if data] == [b"10\r\n0123456789abcdef\r\n", b"0\r\n\r\n"]
    assert response.keep_alive


async def test_the_end_may_go_with_the_last_bytes(wire: Wire) -> None:
    response = ChunkedResponse(make_request(wire), {})
    await response.write(b"first")
    response.write_last(b"last")
    await response.write_eof()
    assert wire.writes[1:] == [b"4\r\nlast\r\n0\r\n\r\n"]
    with pytest.raises(ConnectionError):
        await response.write(b"more")
    assert len(wire.writes) == 2


async def test_a_head_may_go_before_the_chunks_and_a_stream_may_have_none(wire: Wire) -> None:
    response = ChunkedResponse(request := make_request(wire, keep_alive=False), {})
    await response.prepare(request)
    await response.prepare(request)
    await response.write_eof()
    head, end = wire.writes
    assert split(head) == ({"HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Connection: close"}, b"")
    assert (end, response.keep_alive) == (b"0\r\n\r\n", False)
    empty = ChunkedResponse(make_request(wire), {})
    await empty.write_eof()
    assert split(wire.writes[-1])[1] == b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("version", "keep_alive", "lines"),
    [
        (HttpVersion11, True, {"HTTP/1.1 201 Created"}),
        (HttpVersion10, False, {"HTTP/1.0 201 Created"}),
        (HttpVersion10, True, {"HTTP/1.0 201 Created", "Connection: keep-alive"}),
        (HttpVersion11, False, {"HTTP/1.1 201 Created", "Connection: close"}),
    ],
)
async def test_a_whole_response_is_one_write(
    wire: Wire, version: HttpVersion, keep_alive: bool, lines: set[str]
) -> None:
    response = SingleWriteResponse(201, b"body", {})
    await response.prepare(make_request(wire, version, keep_alive=keep_alive))
    (written,) = wire.writes
    assert split(written) == ({*lines, "Content-Length: 4"}, b"body")


async def test_nothing_is_written_to_a_client_that_has_left(wire: Wire) -> None:
    wire.is_lost = True
    chunked = ChunkedResponse(make_request(wire), {})
    for writing in (
        chunked.write(b"x"),
        chunked.write_eof(),
        SingleWriteResponse(200, b"", {}).prepare(make_request(wire)),
    ):
        with pytest.raises(ConnectionError):
            await writing
    assert wire.writes == []
