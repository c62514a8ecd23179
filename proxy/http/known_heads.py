"""Heads of requests that the HTTP parser has accepted before.

A client sends one head again and again, and only the length of the body differs. A request with such a head is not
parsed once more, and what was found out about the head is still known (`facts`). A head is remembered only if the
parser began with its first byte, and if nothing in it changes how the connection goes on: it has one Content-Length,
no Transfer-Encoding, no Expect, no Upgrade, and does not close the connection.
"""

from __future__ import annotations

import re
from typing import Generic, NamedTuple, TypeVar

from aiohttp import HttpVersion11
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy

__all__ = ["KnownHead", "KnownHeads", "KnownRequest", "measure_request"]

_MOST = 512  # heads
_LONGEST = 4 * 1024  # bytes of one
_METHOD = b"POST "
_END = b"\r\n\r\n"
_NAME = b"content-length"
_MOST_DIGITS = 9
_LENGTH = re.compile(rb"\r\ncontent-length: ?([0-9]{1,%d})\r\n" % _MOST_DIGITS, re.IGNORECASE)
_OTHERS = ("Transfer-Encoding", "Expect")

_F = TypeVar("_F")


class KnownHead(Generic[_F]):
    """A head: the bytes before its length and those behind it. `facts` belong to whoever answers requests: what the
    head alone decides."""

    __slots__ = ("_after", "_before", "_length", "_message", "facts")

    def __init__(self, before: bytes, after: bytes, message: RawRequestMessage, length: int) -> None:
        self._before = before
        self._after = after
        self._message = message
        self._length = length
        self.facts: _F | None = None

    def match(self, data: bytes) -> KnownRequest[_F] | None:
        """The request that begins with these bytes; None if it has another head, or if they have more than one
        request."""
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        start, stop = len(before), data.find(b"\r", len(before), len(before) + _MOST_DIGITS + 1)
        digits = data[start:stop]
        if not data.startswith(after, stop) or not digits.isdigit():
            return None
        begin, length = stop + len(after), int(digits)
        rest = begin + length - len(data)
        return KnownRequest(self, self.fit(length), data[begin:], rest) if length and rest >= 0 else None

    def fit(self, length: int) -> RawRequestMessage:
        """The parsed head, with this length of the body."""
        message = self._message
        if length == self._length:
            return message
        headers = CIMultiDict(message.headers)
        headers["Content-Length"] = str(length)
        digits = b"%d" % length
        raw = tuple((name, digits if name.lower() == _NAME else value) for name, value in message.raw_headers)
        return message._replace(headers=CIMultiDictProxy(headers), raw_headers=raw)


class KnownRequest(NamedTuple, Generic[_F]):
    """A request with a known head. `body` is what has arrived of it, `rest` how many bytes have not."""

    head: KnownHead[_F]
    message: RawRequestMessage
    body: bytes
    rest: int


class KnownHeads(Generic[_F]):
    """The heads that a server remembers. Without room for one more it forgets all."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead[_F]] = {}

    def find(self, data: bytes) -> KnownRequest[_F] | None:
        """The request that begins with these bytes; None if its head is not known or not complete, or if the bytes
        have more than one request."""
        found = _split(data)
        head = None if found is None else self._heads.get(found[0] + found[1])
        return None if head is None else head.match(data)

    def add(self, data: bytes, message: RawRequestMessage) -> None:
        """Remember the head with which these bytes begin; the parser made `message` of it, and had nothing before."""
        found = _split(data)
        if found is None or not _is_plain(message):
            return
        if len(self._heads) >= _MOST:
            self._heads.clear()
        before, after, length = found
        self._heads.setdefault(before + after, KnownHead(before, after, message, length))


def measure_request(data: bytes, message: RawRequestMessage) -> int | None:
    """How many bytes of the request that these bytes begin with have not arrived; None if there are other bytes behind
    it, or if that is not known."""
    if message.chunked or message.upgrade or data[:1] in b"\r\n":
        return None
    begin, length = data.find(_END) + len(_END), message.headers.get("Content-Length", "0")
    if begin < len(_END) or not length.isdecimal():
        return None
    rest = begin + int(length) - len(data)
    return rest if rest >= 0 else None


def _split(data: bytes) -> tuple[bytes, bytes, int] | None:
    """The head before its length, the head behind it, and the length."""
    if not data.startswith(_METHOD):
        return None
    end = data.find(_END, 0, _LONGEST) + len(_END)
    found = _LENGTH.search(data, 0, end) if end > len(_END) else None
    if found is None:
        return None
    begin, stop = found.span(1)
    return data[:begin], data[stop:end], int(found[1])


def _is_plain(message: RawRequestMessage) -> bool:
    """Whether the connection stays as it is after the request, and what its path is can be seen from the path alone."""
    if message.version != HttpVersion11 or message.should_close or message.upgrade or message.chunked:
        return False
    if message.compression is not None or not message.path.startswith("/"):
        return False
    return not any(name in message.headers for name in _OTHERS)
