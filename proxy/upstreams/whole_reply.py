"""Reading a whole reply at once, if all of it came in one read and nothing in it is unusual.

Most whole replies are like that. What is read here is what the HTTP parser would read; everything else is left to it:
other statuses, bodies in chunks or until the connection closes, connections that do not stay open, odd heads.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from multidict import CIMultiDict

__all__ = ["WholeReply", "read_whole_reply"]

_START = b"HTTP/1.1 200 OK\r\n"
_END = b"\r\n\r\n"
_CHUNKED = b"chunked"  # the length of what is sent like that is not known at once
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
    if end < len(_START) or data.find(_CHUNKED, 0, end) >= 0:
        return None
    if _LINES.fullmatch(data, len(_START), end + 2) is None:
        return None
    headers = CIMultiDict(_FIELD.findall(data[len(_START) : end + 2].decode("ascii")))
    length = headers.get("Content-Length", "")
    if _LENGTH.fullmatch(length) is None or int(length) != len(data) - end - len(_END) or not _is_plain(headers):
        return None
    return WholeReply(headers, data[end + len(_END) :])


def _is_plain(headers: CIMultiDict[str]) -> bool:
    if "Transfer-Encoding" in headers or "Upgrade" in headers or len(headers) > _MOST_LINES:
        return False
    if headers.get("Connection", "keep-alive").lower() != "keep-alive":
        return False
    return len(headers.getall("Content-Length")) == 1
