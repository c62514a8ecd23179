"""Reading a whole reply at once, if all of it came in one read and nothing in it is unusual.

Most whole replies are like that. What is read here is what the HTTP parser would read; everything else is left to it:
other statuses, bodies until the connection closes, chunks that are not plain, connections that do not stay open, odd
heads.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from multidict import CIMultiDict

from .chunks import LAST_CHUNK, BadChunk, ChunkReader

__all__ = ["WholeReply", "read_whole_reply"]

_START = b"HTTP/1.1 200 OK\r\n"
_END = b"\r\n\r\n"
_CHUNKED = b"chunked"
_LONGEST = 8 * 1024  # bytes of a head; the parser accepts no longer line
_MOST_LINES = 100
_LINES = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*\r\n)+")
_FIELD = re.compile(r"([^:]+):[\t ]*([^\r]*?)[\t ]*\r\n")
_LENGTH = re.compile(r"[0-9]{1,9}")


class WholeReply(NamedTuple):
    """A reply with the status 200. Its connection stays open, and has nothing more to give."""

    headers: CIMultiDict[str]
    body: bytes


def read_whole_reply(data: bytes) -> WholeReply | None:
    """The reply that these bytes are, from the first to the last one; None if the HTTP parser has to look at them."""
    if not data.startswith(_START):
        return None
    end = data.find(_END, 0, _LONGEST)
    if end < len(_START) or (data.find(_CHUNKED, 0, end) >= 0 and not data.endswith(LAST_CHUNK)):
        return None
    if _LINES.fullmatch(data, len(_START), end + 2) is None:
        return None
    headers = CIMultiDict(_FIELD.findall(data[len(_START) : end + 2].decode("ascii")))
    body = _read_body(headers, data[end + len(_END) :]) if _is_plain(headers) else None
    return None if body is None else WholeReply(headers, body)


def _is_plain(headers: CIMultiDict[str]) -> bool:
    if "Upgrade" in headers or len(headers) > _MOST_LINES:
        return False
    return headers.get("Connection", "keep-alive").lower() == "keep-alive"


def _read_body(headers: CIMultiDict[str], content: bytes) -> bytes | None:
    """The body, if the bytes after the head are all of it, and nothing else."""
    codings = headers.getall("Transfer-Encoding", [])
    lengths = headers.getall("Content-Length", [])
    if codings:
        return _join_chunks(content) if not lengths and [*map(str.lower, codings)] == ["chunked"] else None
    is_known = len(lengths) == 1 and _LENGTH.fullmatch(lengths[0]) is not None
    return content if is_known and int(lengths[0]) == len(content) else None


def _join_chunks(content: bytes) -> bytes | None:
    try:
        body, rest = ChunkReader().read(content)
    except BadChunk:
        return None
    return body if rest == LAST_CHUNK else None
