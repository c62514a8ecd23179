"""Requests whose head is known: the server answers them as if it had parsed them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.aiohttp_request import get_known_head
from dragoman.proxy.http.aiohttp_responses import SingleWriteResponse
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.known_heads import KnownHeads

_FIELDS = st.sampled_from(
    [
        *("Host: a", "host: b", "Authorization: Bearer k1", "Authorization: Bearer k2", "X-Length: 5", "Accept: */*"),
        *("Content-Type: application/json", "Content-Length: 3", "content-length:7", "Content-Length:  8"),
        *("Transfer-Encoding: chunked", "Connection: close", "Connection: keep-alive", "Upgrade: h2c", "Expect: 100"),
        *("Content-Encoding: gzip", "X-Fold: a\r\n b", "X-Empty:"),
    ]
)
_HEADS = st.tuples(st.sampled_from(["/v1/chat/completions", "/other?q=1", "http://a/b", "*"]), st.lists(_FIELDS)).map(
    lambda found: f"POST {found[0]} HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in found[1]) + "\r\n"
)


def parse(data: bytes) -> RawRequestMessage | None:
    """What aiohttp's parser makes of the first request."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpRequestParser(BaseProtocol(loop), loop, 2**16, auto_decompress=False)
        messages, _, _ = parser.feed_data(data)
    except HttpProcessingError:
        return None
    finally:
        loop.close()
    return messages[0][0] if messages else None


def describe(message: RawRequestMessage) -> tuple[object, ...]:
    about = (message.method, message.path, message.version, message.should_close, message.upgrade, message.chunked)
    return (*about, message.compression, [*message.headers.items()], message.raw_headers)


@given(_HEADS, _HEADS, st.binary(max_size=20), st.binary(max_size=20))
def test_a_known_head_is_what_the_parser_makes_of_it(first: str, second: str, body: bytes, other: bytes) -> None:
    heads = KnownHeads[None]()
    begun = first.encode() + body
    if (message := parse(begun)) is not None:
        heads.add(begun, message)
    for head in (first, second):
        data = head.encode() + other
        if (found := heads.find(data)) is not None:
            expected = parse(data)
            assert expected is not None
            assert describe(found.message) == describe(expected)
            assert len(found.body) + found.rest == int(found.message.headers["Content-Length"])
            assert data.endswith(found.body)


class Application:
    """Answers with what it knows of a request: whether its head was known, its address, and its body."""

    async def handle(self, request: BaseRequest) -> StreamResponse:
        known = b"known" if get_known_head(request) is not None else b"parsed"
        body = b""
        while part := await request.content.readany():
            body += part
        about = f"{request.path} {request.headers.get('Authorization')} {request.content_length}".encode()
        return SingleWriteResponse(200, b"|".join((known, about, body)), {})

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        return Response(status=fault.status)

    def log_defect(self, error: BaseException | None) -> None:
        raise AssertionError(error)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = HttpServer(Application(), 5.0)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()
    await server.shutdown(1.0)


def post(body: bytes, key: str = "k", path: str = "/a") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


async def talk(port: int, *writes: bytes) -> list[bytes]:
    """The bodies of what one connection answers to bytes that arrive in these pieces."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in writes:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)
    writer.write_eof()
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return [one.partition(b"\r\n\r\n")[2] for one in received.split(b"HTTP/1.1 ")[1:]]


async def test_the_second_request_with_a_head_is_not_parsed(port: int) -> None:
    assert await talk(port, post(b"one"), post(b"three"), post(b"two!")) == [
        b"parsed|/a k 3|one",
        b"known|/a k 5|three",
        b"known|/a k 4|two!",
    ]


async def test_connections_share_what_is_known(port: int) -> None:
    await talk(port, post(b"one"))
    assert await talk(port, post(b"other")) == [b"known|/a k 5|other"]


async def test_another_head_is_parsed(port: int) -> None:
    found = await talk(port, post(b"one"), post(b"two", key="q"), post(b"two", path="/b"), post(b"two", key="q"))
    assert found == [b"parsed|/a k 3|one", b"parsed|/a q 3|two", b"parsed|/b k 3|two", b"known|/a q 3|two"]


async def test_a_body_may_come_in_pieces_and_the_next_request_with_its_end(port: int) -> None:
    whole = post(b"in four pieces")
    head = whole[: -len(b"in four pieces")]
    pieces = (head, b"in four", b" pieces" + post(b"next"), post(b"last"))
    assert await talk(port, post(b"one"), *pieces) == [
        b"parsed|/a k 3|one",
        b"known|/a k 14|in four pieces",
        b"parsed|/a k 4|next",
        b"known|/a k 4|last",
    ]


async def test_requests_in_one_piece_are_answered_in_their_order(port: int) -> None:
    found = await talk(port, post(b"one"), post(b"two") + post(b"three") + post(b"4"), post(b"five"))
    assert [one.rpartition(b"|")[2] for one in found] == [b"one", b"two", b"three", b"4", b"five"]


async def test_bytes_within_another_request_teach_nothing(port: int) -> None:
    """The parser takes a whole request for a header line of one that began before it."""
    begun = b"POST /evil HTTP/1.1\r\nHost: x\r\nX-Begun: "
    await talk(port, begun, post(b"one"))
    assert await talk(port, post(b"two")) == [b"parsed|/a k 3|two"]
    inside = post(post(b"one"), key="evil")
    await talk(port, inside[: -len(post(b"one", key="x"))], post(b"one", key="x"))
    assert await talk(port, post(b"two", key="x")) == [b"parsed|/a x 3|two"]


async def test_a_pipelined_part_of_a_head_is_not_taken_for_a_known_one(port: int) -> None:
    """While the first request of the second piece is answered, a part of the next one has arrived."""
    found = await talk(port, post(b"one"), post(b"two") + b"POST /b HTTP/1.1\r\nX-Begun: ", post(b"three"))
    assert found == [b"parsed|/a k 3|one", b"parsed|/a k 3|two", b"parsed|/b k 5|three"]


async def test_what_follows_a_part_of_a_bad_head_is_no_request(port: int) -> None:
    """The head has two headers Host, the second one in the last piece, which alone would be a request."""
    begun = b"POST /b HTTP/1.1\r\nHost: x\r\nX-Begun: "
    found = await talk(port, post(b"one"), post(b"two") + begun, post(b"three"))
    assert found == [b"parsed|/a k 3|one", b"parsed|/a k 3|two", b""]


async def test_a_body_that_does_not_come_to_its_end_is_given_up(port: int) -> None:
    assert await talk(port, post(b"one"), post(b"never ends")[:-3]) == [b"parsed|/a k 3|one"]
