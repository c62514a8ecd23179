"""Faults in the form of the MindIE OpenAI-compatible API: exactly `{error, error_type}`.

Whatever is wrong with a body is 422, an unknown model included; the server knows neither 429 nor gateway statuses.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_replies import located, reply
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.native_errors import Words
from dragoman.adapters.native_errors import read_fault as read_native

__all__ = ["WORDS", "error_body", "read_fault", "write_fault"]

WORDS: Words = {
    "bad_request": "invalid_request",
    "not_found_error": "not_found",
    "input_validation_error": "unprocessable",
    "generation_error": "invalid_request",
    "incomplete_generation": "upstream_error",
    "service_unavailable": "upstream_unavailable",
}

_INVALID = (422, "Input Validation Error")
_BAD = "Bad Request"
_INCOMPLETE = (500, "Incomplete Generation")
_UNAVAILABLE = (503, "Service Unavailable")

# kind: status, error_type
_WRITTEN: dict[Kind, tuple[int, str]] = {
    "invalid_request": _INVALID,
    "unsupported_parameter": _INVALID,
    "extra_parameter": _INVALID,
    "unprocessable": _INVALID,
    "auth": (401, "Unauthorized"),
    "permission": (403, "Unauthorized"),
    "not_found": (404, "NotFoundError"),
    "model_not_found": _INVALID,
    "method_not_allowed": (405, _BAD),
    "request_timeout": (408, _BAD),
    "too_large": (413, _BAD),
    "unsupported_media_type": (415, _BAD),
    "content_filter": (424, "Generation Error"),
    "rate_limit": _UNAVAILABLE,
    "upstream_timeout": _INCOMPLETE,
    "upstream_unavailable": _UNAVAILABLE,
    "upstream_unreachable": _INCOMPLETE,
    "upstream_invalid_response": _INCOMPLETE,
    "upstream_auth_failed": (502, "Incomplete Generation"),
    "upstream_error": _INCOMPLETE,
    "overloaded": _UNAVAILABLE,
    "internal": _INCOMPLETE,
}


def read_fault(found: Reply, ctx: Context) -> Fault:
    """The fault in a provider's answer, whatever its form."""
    return read_native(found, ctx, WORDS)


def write_fault(fault: Fault, ctx: Context) -> Reply:
    return reply(_WRITTEN[fault.kind][0], error_body(fault), fault)


def error_body(fault: Fault) -> JsonObject:
    """The body of an error, and of an error event in a stream."""
    return {"error": located(fault), "error_type": _WRITTEN[fault.kind][1]}
