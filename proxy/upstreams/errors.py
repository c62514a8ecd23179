"""The errors of upstreams, as faults: a table. No exception of a library leaves this folder."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import NamedTuple

import aiohttp

from dragoman.adapters.error_meanings import UNSERVED
from dragoman.adapters.faults import Fault, Kind

from .aiohttp_client import HttpProcessingError, NewConnectionLost

__all__ = [
    "CLIENT_ERRORS",
    "PROXY_REFUSED",
    "UpstreamError",
    "describe_error",
    "is_unserved",
    "to_fault",
]


class UpstreamError(NamedTuple):
    """A row of the table: the exception, and what its fault says. `{host}` in the text is the host to connect to."""

    exception: type[BaseException]
    kind: Kind
    code: str
    text: str
    may_have_begun: bool = False
    """The upstream may have worked on the request."""


_UNREACHABLE: Kind = "upstream_unreachable"
_INVALID: Kind = "upstream_invalid_response"
_LATE: Kind = "upstream_timeout"
PROXY_REFUSED = "upstream_proxy_refused"

# The first matching row applies.
_ERRORS = (
    UpstreamError(aiohttp.ConnectionTimeoutError, _LATE, "upstream_connect_timeout", "connecting took too long"),
    UpstreamError(
        aiohttp.ClientConnectorCertificateError, _UNREACHABLE, "upstream_tls_failed", "its TLS certificate is not valid"
    ),
    UpstreamError(aiohttp.ClientConnectorSSLError, _UNREACHABLE, "upstream_tls_failed", "the TLS handshake failed"),
    UpstreamError(
        aiohttp.ClientProxyConnectionError, _UNREACHABLE, "upstream_unreachable", "cannot connect to its HTTP proxy"
    ),
    UpstreamError(aiohttp.ClientHttpProxyError, _UNREACHABLE, PROXY_REFUSED, "its HTTP proxy refused the request"),
    UpstreamError(aiohttp.ClientConnectorDNSError, _UNREACHABLE, "upstream_unreachable", "cannot resolve {host} (DNS)"),
    UpstreamError(aiohttp.ClientConnectorError, _UNREACHABLE, "upstream_unreachable", "cannot connect"),
    UpstreamError(aiohttp.ServerTimeoutError, _LATE, "upstream_timeout", "did not answer in time"),
    UpstreamError(ssl.SSLError, _UNREACHABLE, "upstream_tls_failed", "TLS failed"),
    UpstreamError(
        aiohttp.ServerDisconnectedError,
        _UNREACHABLE,
        "upstream_disconnected",
        "closed the connection without an answer",
    ),
    UpstreamError(aiohttp.ClientPayloadError, _INVALID, "upstream_truncated", "the reply was cut short"),
    UpstreamError(aiohttp.ClientResponseError, _INVALID, "upstream_protocol_error", "the reply is not valid HTTP"),
    UpstreamError(HttpProcessingError, _INVALID, "upstream_protocol_error", "the reply is not valid HTTP"),
    UpstreamError(aiohttp.ClientOSError, _UNREACHABLE, "upstream_disconnected", "the connection broke"),
    UpstreamError(aiohttp.ClientError, _INVALID, "upstream_protocol_error", "the request failed"),
    UpstreamError(asyncio.TimeoutError, _LATE, "upstream_timeout", "did not answer in time"),
    UpstreamError(OSError, _UNREACHABLE, "upstream_disconnected", "the connection broke"),
)

_TLS_HINTS = {"WRONG_VERSION_NUMBER": "; if the server speaks plain HTTP, its base_url must begin with http://"}
"""What a reason of OpenSSL means in most cases."""

CLIENT_ERRORS = (aiohttp.ClientError, HttpProcessingError, asyncio.TimeoutError, OSError)
"""Every exception that `to_fault` converts. Catch these around each use of the HTTP client."""


def to_fault(error: BaseException, provider: str) -> Fault:
    """The fault for an exception in CLIENT_ERRORS. Its text contains no part of an address but the host's
    name, and nothing that the upstream sent."""
    found = describe_error(error)
    text = f"{provider}: {found.text}"
    return Fault(found.kind, text, code=found.code, may_have_begun=found.may_have_begun)


def describe_error(error: BaseException) -> UpstreamError:
    """The row for an exception in CLIENT_ERRORS, its text complete. Raises TypeError for any other."""
    if isinstance(error, NewConnectionLost) and error.__cause__ is not None:
        return describe_error(error.__cause__)._replace(may_have_begun=True)
    if isinstance(error.__cause__, ssl.SSLError) and not isinstance(error, aiohttp.ClientConnectorError):
        error = error.__cause__  # an alert after the handshake: no certificate was sent, for instance
    for row in _ERRORS:
        if isinstance(error, row.exception):
            return row._replace(text=_complete_text(row.text, error))
    raise TypeError(f"not an error of the HTTP client: {error!r}")


def _complete_text(text: str, error: BaseException) -> str:
    """The text with the host, or else with what the TLS library or the operating system says, in parentheses."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return text.format(host=error.host)
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    words = getattr(inner, "verify_message", None) or getattr(inner, "reason", None)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        words = str(error.status)
    if words is None and isinstance(inner, OSError) and inner.errno and not isinstance(inner, socket.gaierror):
        words = os.strerror(inner.errno)  # its own text may hold the address
    return f"{text} ({words}{_TLS_HINTS.get(words, '')})" if isinstance(words, str) and words else text


_INPUTS = (("messages",), ("prompt",), ("input",))


def is_unserved(fault: Fault) -> bool:
    """Whether a provider's error says that it does not serve the protocol of the call, or not for this model."""
    if fault.answered == 405 or fault.code == UNSERVED:
        return True
    if fault.kind == "not_found":
        return fault.answered == 404 and fault.path in ((), ("model",)) and fault.code != "previous_response_not_found"
    return fault.kind == "extra_parameter" and fault.path in _INPUTS
