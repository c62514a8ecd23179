"""The rules for the head of a request that the HTTP parser does not know (RFC 9112).

A message whose end two servers see in different places lets a client smuggle a request past the first of them, so every
head is refused whose framing another server may read in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiohttp import HttpVersion, HttpVersion10, HttpVersion11

from dragoman.adapters.faults import Fault

__all__ = ["MOST_HEAD_BYTES", "find_bad_head", "head_too_large", "measure_head"]

MOST_HEAD_BYTES = 64 * 1024
"""The largest size of a request's head."""

_PER_FIELD = 4  # bytes: the colon, the space and the end of the line


def find_bad_head(version: HttpVersion, headers: Mapping[str, str]) -> Fault | None:
    """The fault of a head: a version other than 1.0 and 1.1 (2.5), or transfer codings other than `chunked` in HTTP/1.1
    (6.1)."""
    if version not in (HttpVersion11, HttpVersion10):
        return Fault("invalid_request", "the version must be HTTP/1.1 or HTTP/1.0", status=505, code="bad_http")
    coding = headers.get("Transfer-Encoding")
    if coding is None:
        return None
    if version == HttpVersion10:
        return Fault("invalid_request", "HTTP/1.0 has no header Transfer-Encoding", code="bad_http")
    if coding.strip().lower() == "chunked":
        return None
    text = "the header Transfer-Encoding may only be chunked"
    return Fault("invalid_request", text, status=501 if coding.strip() else 400, code="bad_http")


def measure_head(raw_headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The size in bytes of the header lines."""
    return sum(len(name) + len(value) + _PER_FIELD for name, value in raw_headers)


def head_too_large() -> Fault:
    """The fault of a head that is larger than the limit."""
    text = f"the headers are larger than {MOST_HEAD_BYTES} bytes"
    return Fault("invalid_request", text, status=431, code="headers_too_large")
