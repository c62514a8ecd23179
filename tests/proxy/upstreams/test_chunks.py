"""Chunks of a reply's body: whatever pieces they arrive in, the body is what aiohttp's parser alone makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from hypothesis import given
from hypothesis import strategies as st

from dragoman.proxy.upstreams import aiohttp_protocol
from dragoman.proxy.upstreams.aiohttp_protocol import RESPONSE_PARAMETERS, Delivery, ResponseProtocol
from dragoman.proxy.upstreams.chunks import BadChunk, ChunkReader, find_chunks

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CONTENTS = st.one_of(st.binary(min_size=1, max_size=40), st.sampled_from([b"\r\n", b"data: x\r\n\r\n", b"a\r\n1\r\nb"]))
WRITERS = st.sampled_from([chunk, lambda content: b"%02X\r\n%b\r\n" % (len(content), content)])
CHUNKS = st.builds(lambda write, contents: [*map(write, contents)], WRITERS, st.lists(CONTENTS, max_size=8))
ENDS = st.sampled_from(
    [
        *(LAST, LAST, LAST, b"", b"0\r\nTrailer: x\r\n\r\n", b"0;x=y\r\n\r\n", b"000\r\n\r\n", b"00000000000\r\n\r\n"),
        *(b"3;x=y\r\nabc\r\n" + LAST, b"000000000003\r\nabc\r\n" + LAST, b"3\r\nabcd\r\n" + LAST, b"3\r\nabc", b"3"),
        *(b"+3\r\nabc\r\n" + LAST, b"0x3\r\nabc\r\n" + LAST, b"\r\n", b"zz\r\n", b"3 \r\nabc\r\n" + LAST, b"-1\r\n"),
        *(b"3\nabc\n0\n\n", b"3\r\nabc\n\r\n", b"3\r\nabc\r" + LAST, LAST + b"more"),
    ]
)
CUTS = st.lists(st.integers(1, 60), max_size=30)


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [one for one in (*pieces, data) if one]


class Transport(asyncio.Transport):
    """Is open until it is closed, and tells whether nobody wants to read."""

    is_open = True
    is_paused = False

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


async def receive(handler: ResponseHandler, pieces: Sequence[bytes], *, delivers: bool = False) -> tuple[bytes, bool]:
    """The body that a handler makes of a response in these pieces, and whether it came to its end."""
    transport = Transport()
    handler.connection_made(transport)
    if isinstance(handler, ResponseProtocol):
        handler.expect_response()
        first = asyncio.ensure_future(handler.read_whole())
        await asyncio.sleep(0)
        handler.data_received(pieces[0])
        if (reply := await first) is not None:
            return reply.body, True
    else:
        handler.set_response_params(**aiohttp_protocol.RESPONSE_PARAMETERS)
        handler.data_received(pieces[0])
    try:
        _, content = await handler.read()
    except HttpProcessingError:  # in the first bytes
        return b"", False
    found: list[bytes] = []
    if delivers and isinstance(handler, ResponseProtocol):
        handler.delivery = Delivery(content, lambda data: not found.append(data))
        handler.delivery.go_on()
    for piece in pieces[1:]:
        while transport.is_paused and (data := content.read_nowait()):
            found.append(data)
        if handler.transport is not None:
            handler.data_received(piece)
    while transport.is_paused and (data := content.read_nowait()):
        found.append(data)
    handler.connection_lost(None)
    is_whole = content.is_eof() and content.exception() is None
    if content.exception() is None:
        found.append(content.read_nowait())
    else:
        found += content._buffer
    return b"".join(found), is_whole


@pytest.fixture
def small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading pauses after a few bytes that nobody has taken, and only because of them."""
    for name in ("begin_http_chunk_receiving", "end_http_chunk_receiving"):
        monkeypatch.setattr(StreamReader, name, lambda self: None)
    monkeypatch.setattr(aiohttp_protocol, "RESPONSE_PARAMETERS", {**RESPONSE_PARAMETERS, "read_bufsize": 16})


@pytest.mark.usefixtures("small_buffer")
@pytest.mark.parametrize("delivers", [False, True])
@given(CHUNKS, ENDS, CUTS, st.integers(0, 100))
def test_the_body_is_what_the_parser_alone_reads(
    delivers: bool, chunks: list[bytes], end: bytes, sizes: list[int], first: int
) -> None:
    body = b"".join(chunks) + end
    compare([HEAD + body[:first], *cut(body[first:], sizes)], delivers=delivers)


@pytest.mark.usefixtures("small_buffer")
@pytest.mark.parametrize("delivers", [False, True])
@given(st.lists(CHUNKS, max_size=4), ENDS)
def test_so_it_is_if_each_read_ends_with_a_chunk(delivers: bool, reads: list[list[bytes]], end: bytes) -> None:
    compare([HEAD, *filter(None, map(b"".join, reads)), *filter(None, [end])], delivers=delivers)


def compare(pieces: Sequence[bytes], *, delivers: bool) -> None:
    async def receive_twice() -> None:
        loop = asyncio.get_running_loop()
        expected = await receive(ResponseHandler(loop), pieces)
        found = await receive(ResponseProtocol(loop), pieces, delivers=delivers)
        assert found[1] == expected[1]
        if expected[1]:
            assert found[0] == expected[0]
        else:  # how much comes before an error depends on where the parser notices it
            assert found[0].startswith(expected[0]) or expected[0].startswith(found[0])

    asyncio.run(receive_twice())


@given(CHUNKS, CUTS)
def test_plain_chunks_leave_only_the_last_one(chunks: list[bytes], sizes: list[int]) -> None:
    reader, content = ChunkReader(), b""
    for piece in cut(b"".join(chunks), sizes):
        found, rest = reader.read(piece)
        assert rest == b""
        content += found
    assert reader.read(LAST) == (b"", LAST)
    assert content == b"".join(one[one.index(b"\r\n") + 2 : -2] for one in chunks)


@pytest.mark.parametrize("data", [b"3\r\nabcd\r\n", b"1\r\naX\n", b"1\r\na\rX"])
def test_a_chunk_longer_than_its_size_is_an_error(data: bytes) -> None:
    for at in range(len(data)):
        reader = ChunkReader()
        with pytest.raises(BadChunk):
            for piece in cut(data, [at]):
                reader.read(piece)


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (HEAD, len(HEAD)),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding:chunked\r\n\r\n1", 46),
        (HEAD[:-1], None),
        (b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nTransfer-Encoding: chunked\r\n\r\n", None),
    ],
)
def test_where_chunks_begin(data: bytes, start: int | None) -> None:
    assert find_chunks(data) == start


@pytest.mark.parametrize("end", [b"", LAST, chunk(b"more")[:-1], chunk(b"more")[:3], b"4", b"5\r"])
def test_chunks_that_arrive_together_are_split_at_once(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    read: list[int] = []
    read_size = ChunkReader._read_size
    monkeypatch.setattr(ChunkReader, "_read_size", lambda *args: read.append(args[2]) or read_size(*args))
    contents = [b"data: " + b"x" * size + b"\n\n" for size in range(1, 30)]
    found, rest = ChunkReader().read(b"".join(map(chunk, contents)) + end)
    assert found.startswith(b"".join(contents))
    assert rest == (LAST if end == LAST else b"")
    assert len(read) <= 2, "the first chunk, and what comes after the whole ones"


async def test_the_events_of_a_stream_are_not_parsed_by_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def note(self: ResponseHandler, data: bytes) -> None:
        parsed.append(data)
        receive_data(self, data)

    receive_data = ResponseHandler.data_received
    monkeypatch.setattr(aiohttp_protocol, "ResponseHandler", SimpleNamespace(data_received=note))
    events = [b"data: %d\n\n" % number for number in range(20)]
    pieces = [HEAD, *map(chunk, events), LAST]
    found = await receive(ResponseProtocol(asyncio.get_running_loop()), pieces, delivers=True)
    assert found == (b"".join(events), True)
    assert parsed == [HEAD, LAST]
