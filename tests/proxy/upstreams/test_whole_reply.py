"""Replies that are read at once: each is what aiohttp's parser would make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParser, RawResponseMessage
from hypothesis import given
from hypothesis import strategies as st

from dragoman.proxy.upstreams.whole_reply import read_whole_reply

_START = b"HTTP/1.1 200 OK\r\n"
_LINES = st.sampled_from(
    [
        *(b"Content-Type: application/json", b"content-length: 2", b"Content-Length:2", b"Content-Length: 02"),
        *(b"Content-Length: +2", b"Content-Length: 2 ", b"Transfer-Encoding: chunked", b"Connection: close"),
        *(b"connection: Keep-Alive", b"Upgrade: h2c", b"Server : x", b" folded", b"X: \xc3\xa9", b"X: a\tb ", b"X:"),
        *(b"Set-Cookie: a", b"Set-Cookie: b", b"X: \x00", b": no name", b"X", b"Date: Mon, 23 Nov 2026 08:00:00 GMT"),
    ]
)
_REPLIES = st.builds(
    lambda start, lines, body: start + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body,
    st.sampled_from(
        [_START, _START, _START, b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 201 Created\r\n", b"HTTP/1.1 200 Fine\r\n"]
    ),
    st.lists(_LINES, max_size=5),
    st.sampled_from(
        [
            *(b"{}", b"{}", b"{}", b"", b"{", b"{}\r\n", b"{}HTTP/1.1 200 OK\r\n\r\n", b"\r\n\r\n"),
            *(b"2\r\n{}\r\n0\r\n\r\n", b"1\r\n{\r\n01\r\n}\r\n0\r\n\r\n", b"0\r\n\r\n", b"2\r\n{}\r\n"),
            *(b"2\r\n{}\r\n0\r\nX: y\r\n\r\n", b"2;x\r\n{}\r\n0\r\n\r\n", b"3\r\n{}\r\n0\r\n\r\n"),
            *(b"2\r\n{}\r\n00\r\n\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n0\r\n\r\n"),
        ]
    ),
)


def parse(data: bytes) -> tuple[RawResponseMessage, bytes] | None:
    """The reply that aiohttp's parser makes of the data; None if it is not one whole reply."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpResponseParser(BaseProtocol(loop), loop, 2**16, read_until_eof=True, auto_decompress=False)
        messages, _, _ = parser.feed_data(data)
    except HttpProcessingError:
        return None
    finally:
        loop.close()
    if len(messages) != 1 or not messages[0][1].is_eof():
        return None
    return messages[0][0], messages[0][1].read_nowait()


def list_fields(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values in their order. The parser spells the names that it knows in its own way."""
    return [(name.lower(), value) for name, value in headers.items()]


@given(_REPLIES)
def test_it_is_what_the_parser_reads(data: bytes) -> None:
    found = read_whole_reply(data)
    if found is not None:
        expected = parse(data)
        assert expected is not None
        message, body = expected
        assert (message.code, message.should_close, body) == (200, False, found.body)
        assert list_fields(message.headers) == list_fields(found.headers)


def test_a_plain_reply_is_read() -> None:
    found = read_whole_reply(_START + b"Content-Type: application/json\r\ncontent-length: 2\r\nX-A: b c\t\r\n\r\n{}")
    assert found is not None
    assert dict(found.headers) == {"Content-Type": "application/json", "content-length": "2", "X-A": "b c"}
    assert found.body == b"{}"


def test_a_reply_in_plain_chunks_is_read() -> None:
    found = read_whole_reply(_START + b"transfer-encoding: Chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
    assert found is not None
    assert found.body == b"{}"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + _START + b"Content-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
        _START + b"Content-Length: 3\r\n\r\n{}",
        _START + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n",
        _START + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        _START + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        _START + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
        _START + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}}0\r\n\r\n",
        _START + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        _START + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        _START + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}",
        _START + b"Content-Length: 2\r\n folded\r\n\r\n{}",
        _START + b"X: " + b"x" * 9_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
        _START + b"X: y\r\n" * 101 + b"Content-Length: 2\r\n\r\n{}",
        _START + b"\r\n",
    ],
)
def test_everything_else_is_left_to_the_parser(data: bytes) -> None:
    assert read_whole_reply(data) is None
