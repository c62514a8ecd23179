"""What can go wrong with an upstream, as faults; and which of them deserve another try.

Both are tables. `fault_of` gives the fault for an exception of the HTTP client: no exception of a library goes further
up than this. `chance_of` tells, for a fault that came before anything was sent to the client, whether to ask the same
target once more, and whether to ask the next one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import NamedTuple

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from dragoman.adapters.faults import Fault, Kind

__all__ = ["ERRORS", "PROXY_REFUSED", "Chance", "chance_of", "fault_of", "mishap_of"]


class Mishap(NamedTuple):
    error: type[BaseException]
    kind: Kind
    code: str
    text: str


_UNREACHABLE: Kind = "upstream_unreachable"
_INVALID: Kind = "upstream_invalid_response"
_LATE: Kind = "upstream_timeout"
PROXY_REFUSED = "upstream_proxy_refused"

# The first row that fits counts.
_MISHAPS = (
    Mishap(aiohttp.ConnectionTimeoutError, _LATE, "upstream_connect_timeout", "no connection in time"),
    Mishap(aiohttp.ClientConnectorCertificateError, _UNREACHABLE, "upstream_tls_failed", "TLS certificate refused"),
    Mishap(aiohttp.ClientConnectorSSLError, _UNREACHABLE, "upstream_tls_failed", "the TLS handshake failed"),
    Mishap(aiohttp.ClientProxyConnectionError, _UNREACHABLE, "upstream_unreachable", "no connection to its HTTP proxy"),
    Mishap(aiohttp.ClientHttpProxyError, _UNREACHABLE, PROXY_REFUSED, "its HTTP proxy refuses"),
    Mishap(aiohttp.ClientConnectorDNSError, _UNREACHABLE, "upstream_unreachable", "its name is not known"),
    Mishap(aiohttp.ClientConnectorError, _UNREACHABLE, "upstream_unreachable", "no connection"),
    Mishap(aiohttp.ServerTimeoutError, _LATE, "upstream_timeout", "no answer in time"),
    Mishap(ssl.SSLError, _UNREACHABLE, "upstream_tls_failed", "TLS failed"),
    Mishap(aiohttp.ServerDisconnectedError, _UNREACHABLE, "upstream_disconnected", "it hung up unanswered"),
    Mishap(aiohttp.ClientPayloadError, _INVALID, "upstream_truncated", "the reply was cut short"),
    Mishap(aiohttp.ClientResponseError, _INVALID, "upstream_protocol_error", "it speaks no proper HTTP"),
    Mishap(HttpProcessingError, _INVALID, "upstream_protocol_error", "it speaks no proper HTTP"),
    Mishap(aiohttp.ClientOSError, _UNREACHABLE, "upstream_disconnected", "the connection broke"),
    Mishap(aiohttp.ClientError, _INVALID, "upstream_protocol_error", "the exchange failed"),
    Mishap(asyncio.TimeoutError, _LATE, "upstream_timeout", "no answer in time"),
    Mishap(OSError, _UNREACHABLE, "upstream_disconnected", "the connection broke"),
)

ERRORS = (aiohttp.ClientError, HttpProcessingError, asyncio.TimeoutError, OSError)
"""Every exception that `fault_of` knows, to be caught around each use of the HTTP client."""


def fault_of(error: BaseException, provider: str) -> Fault:
    """The fault for an exception in ERRORS. Its text never holds an address or anything the upstream sent."""
    mishap = mishap_of(error)
    return Fault(mishap.kind, f"upstream {provider}: {mishap.text}", code=mishap.code)


def mishap_of(error: BaseException) -> Mishap:
    """The row for an exception in ERRORS, the reason in its text."""
    if isinstance(error.__cause__, ssl.SSLError) and not isinstance(error, aiohttp.ClientConnectorError):
        error = error.__cause__  # an alert after the handshake: no certificate was sent, for instance
    for mishap in _MISHAPS:
        if isinstance(error, mishap.error):
            return mishap._replace(text=f"{mishap.text}{_reason(error)}")
    raise TypeError(f"not an error of the HTTP client: {error!r}")


def _reason(error: BaseException) -> str:
    """What the TLS library or the operating system says about it, in parentheses."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    words = getattr(inner, "verify_message", None) or getattr(inner, "reason", None)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        words = str(error.status)
    if words is None and isinstance(inner, OSError) and inner.errno and not isinstance(inner, socket.gaierror):
        words = os.strerror(inner.errno)  # its own text may hold the address
    return f" ({words})" if isinstance(words, str) and words else ""


class Chance(NamedTuple):
    """`again`: ask the same target once more. `elsewhere`: ask the next target."""

    again: bool
    elsewhere: bool


_NONE = Chance(again=False, elsewhere=False)
_ELSEWHERE = Chance(again=False, elsewhere=True)
_BOTH = Chance(again=True, elsewhere=True)

_BY_CODE: dict[str, Chance] = {
    "upstream_unreachable": _BOTH,
    "upstream_disconnected": _BOTH,  # a stale pooled connection looks like this
}

_BY_KIND: dict[Kind, Chance] = {
    "rate_limit": _ELSEWHERE,
    "request_timeout": _ELSEWHERE,
    "upstream_timeout": _ELSEWHERE,
    "upstream_unavailable": _ELSEWHERE,
    "upstream_unreachable": _ELSEWHERE,
    "upstream_invalid_response": _ELSEWHERE,
    "upstream_auth_failed": _ELSEWHERE,
    "upstream_error": _ELSEWHERE,
}


def chance_of(fault: Fault) -> Chance:
    """Whether this fault of an upstream, before anything was sent to the client, deserves another try."""
    if fault.owner == "provider" and fault.code in _BY_CODE:
        return _BY_CODE[fault.code]
    return _BY_KIND.get(fault.kind, _NONE)
