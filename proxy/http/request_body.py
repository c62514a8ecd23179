"""Reading a client's request: its id, its path, its host, its body. An invalid request raises Fault."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from typing import cast

from aiohttp import HttpVersion11
from aiohttp.web_request import BaseRequest

from dragoman.adapters.decompression import BadEncoding, DecompressedTooLarge, Decompressor, create_decompressor
from dragoman.adapters.faults import Fault

from .aiohttp_bodies import take_rest
from .aiohttp_connection import Connection, RequestPayloadError
from .aiohttp_server import send_continue
from .deadline import Deadline
from .large_body import LargeBody, list_pieces

__all__ = [
    "CLIENT_DEADLINES",
    "LARGE",
    "choose_request_id",
    "create_request_id",
    "get_host",
    "get_path",
    "read_body",
    "read_client_deadline",
    "read_plain_body",
]

LARGE = 256 * 1024
"""Bytes of a body after which its rest is read in pieces, and stays so."""

CLIENT_DEADLINES = {"x-request-timeout": 1.0, "x-envoy-expected-rq-timeout-ms": 0.001}
"""The headers that say how long a client waits, the second one as Envoy sends it, and their units in seconds."""

_random = random.Random()  # an id has to be unique, not secret
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_JSON = "application/json"
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_CHARSET = re.compile(r'charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)


def choose_request_id(headers: Mapping[str, str]) -> str:
    """The client's x-request-id if it is safe to log and return, otherwise a new id."""
    given = headers.get("x-request-id")
    return given if given is not None and _ID.fullmatch(given) else create_request_id()


def create_request_id() -> str:
    """A random UUID: some servers refuse any other id."""
    digits = f"{_random.getrandbits(120):030x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-{digits[18:]}"


def read_client_deadline(headers: Mapping[str, str]) -> float | None:
    """For how many seconds the client waits; None if it does not say. Raises Fault for a value that is no positive
    number."""
    for name, unit in CLIENT_DEADLINES.items():
        text = headers.get(name)
        if text is not None:
            if not _NUMBER.fullmatch(text) or not float(text):
                raise Fault("invalid_request", f"the header {name} must be a positive number", code="invalid_header")
            return float(text) * unit
    return None


def get_path(request: BaseRequest) -> str:
    """The path as the client sent it, without query, and without an authority before it."""
    raw = request.raw_path
    if not raw.startswith("/"):
        raw = request.rel_url.raw_path
    return raw.partition("?")[0]


def get_host(request: BaseRequest) -> str:
    """The host that the client asks for: of an absolute address its authority, else the header Host (RFC 9112, 3.2.2);
    empty if there is none. Raises Fault for a header that names no host."""
    host = request.headers.get("Host")
    if host is not None and not _HOST.fullmatch(host):
        raise Fault("invalid_request", "the header Host is not a host name", code="bad_http")
    if not request.raw_path.startswith("/") and (found := _AUTHORITY.match(request.raw_path)) is not None:
        return found[1]
    return host or ""


async def read_body(request: BaseRequest, limit: int, deadline: Deadline, *, needs_type: bool) -> bytes | LargeBody:
    """Read the whole body, and decompress it; `limit` is in bytes, before and after. The deadline's current phase
    limits the time. `needs_type` says whether Content-Type has to be there. Raises Fault."""
    headers = request.headers
    _check_content_type(headers.get("Content-Type"), needed=needs_type)
    length = request.content_length
    if length is not None and length > limit:
        raise _too_large_fault(limit, length)
    try:
        decompressor = create_decompressor(headers.get("Content-Encoding"), limit)
        if "Expect" in headers:
            await _send_continue(request, headers["Expect"])
        body = await _read(request, limit, deadline)
        return body if decompressor is None else await _decompress(decompressor, body)
    except BadEncoding as error:
        text = f"{error}; the header Content-Encoding may be gzip or deflate, for a body that is"
        raise Fault("invalid_request", text, code="invalid_content_encoding") from None
    except DecompressedTooLarge:
        raise _too_large_fault(limit) from None


async def read_plain_body(request: BaseRequest, limit: int, deadline: Deadline) -> bytes:
    """Read a body of any type, without decompression; `limit` is in bytes. Raises Fault."""
    body = await _read(request, limit, deadline)
    return body if isinstance(body, bytes) else body.take()


async def _read(request: BaseRequest, limit: int, deadline: Deadline) -> bytes | LargeBody:
    content = request.content
    if (whole := take_rest(content)) is not None and len(whole) <= limit:
        return whole
    try:
        with deadline:
            begun = whole or await content.readany()
            is_whole = len(begun) > limit or content.at_eof()
            body = begun if is_whole else await _read_rest(request, LargeBody((begun,)), limit)
    except RequestPayloadError as error:
        error.__traceback__ = None  # aiohttp keeps the error: its frames have the body, and would be a cycle
        raise Fault("invalid_request", "the body is not valid HTTP/1.1", code="bad_http") from None
    if len(body) > limit:
        raise _too_large_fault(limit)
    return body


async def _read_rest(request: BaseRequest, body: LargeBody, limit: int) -> bytes | LargeBody:
    """Read on, at most until the body is larger than the limit."""
    content, connection = request.content, cast(Connection, request.protocol)
    while len(body) <= limit and not content.at_eof():
        body.add(await (content.readany() if len(body) < LARGE else connection.read_piece(content)))
    return body if len(body) > LARGE else body.take()


async def _decompress(decompressor: Decompressor, body: bytes | LargeBody) -> bytes | LargeBody:
    """Decompress a whole body. Other tasks run between two slices of a large one."""
    parts = LargeBody()
    for part in decompressor.decompress(list_pieces(body)):
        parts.add(part)
        await asyncio.sleep(0)
    return parts if len(parts) > LARGE else parts.take()


async def _send_continue(request: BaseRequest, expected: str) -> None:
    if request.version < HttpVersion11:
        return
    if expected.lower() != "100-continue":
        raise Fault("invalid_request", "the header Expect may only be 100-continue", status=417, code="bad_http")
    await send_continue(request)


def _check_content_type(header: str | None, *, needed: bool) -> None:
    if header == _JSON or (header is None and not needed):
        return
    media_type = "" if header is None else header.partition(";")[0].strip().lower()
    if media_type != _JSON and (media_type or needed):
        text = f"the header Content-Type must be {_JSON}; curl sends it with the option -H 'Content-Type: {_JSON}'"
        raise Fault("unsupported_media_type", text, code="unsupported_media_type")
    charset = _CHARSET.search(header or "")
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8"):
        raise Fault(
            "unsupported_media_type", "the charset in the header Content-Type must be utf-8", code="unsupported_charset"
        )


def _too_large_fault(limit: int, size: int | None = None) -> Fault:
    what = "the body is" if size is None else f"the body of {size} bytes is"
    return Fault("too_large", f"{what} larger than the limit of {limit} bytes", code="request_too_large")
