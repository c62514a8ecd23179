"""The faults for what the HTTP parser rejects. They quote nothing of it."""

from __future__ import annotations

import re

from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import _ErrInfo

from dragoman.adapters.faults import Fault

__all__ = ["MOST_HEADERS", "to_error_info", "to_fault"]

MOST_HEADERS = 100
"""The header lines that a request may have."""

_DUPLICATE = re.compile("Duplicate .{1,40} header")


def to_fault(status: int, exc: BaseException | None) -> Fault:
    """The fault for what the parser rejected, or for an exception that nothing handled, with `status` 500 or more."""
    if isinstance(exc, Fault):
        return exc
    if status >= 500:
        return Fault("internal", "something went wrong in the proxy", code="internal_error")
    if isinstance(exc, LineTooLong):
        if isinstance(exc.args[0], bytearray):  # the parser keeps the address in one of these, header lines in bytes
            return Fault("invalid_request", "the address is too long", status=414, code="uri_too_long")
        return Fault("invalid_request", "a header is longer than 8190 bytes", status=431, code="headers_too_large")
    if exc is not None and exc.args[:1] == ("Too many headers received",):
        return Fault(
            "invalid_request", f"there are more than {MOST_HEADERS} headers", status=431, code="headers_too_large"
        )
    if exc is not None and _DUPLICATE.search(str(exc)):
        return Fault("invalid_request", "a header that may occur once occurs twice", code="bad_http")
    if exc is not None and "HTTPS traffic" in str(exc):
        text = "this is TLS, and this address speaks plain HTTP: a client's base address must begin with http://"
        return Fault("invalid_request", text, code="bad_http")
    return Fault("invalid_request", "this is not valid HTTP/1.1", code="bad_http")


def to_error_info(fault: Fault) -> _ErrInfo:
    """What aiohttp has in place of a request that its parser rejects."""
    return _ErrInfo(status=fault.status, exc=fault, message=fault.message)
