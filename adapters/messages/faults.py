"""Faults in Anthropic's form, for every client of Messages: `{"type": "error", "error": {type, message}, request_id}`.

Sources: Anthropic Messages API reference, errors; anthropic 2.12.0, ErrorObject and `_error_classes`. Claude Code 2.1
and other agents shorten a conversation if a message says "prompt is too long".
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_meanings import CONTEXT_LENGTH, OVERLOADED, QUOTA
from dragoman.adapters.error_replies import describe, describe_others, make_reply
from dragoman.adapters.faults import Fault, Kind

__all__ = ["THREADS", "error_body", "write_fault"]

_INVALID = "invalid_request_error"
_OVERLOADED = (529, "overloaded_error")

# kind: status (0: the fault's own), type
_STATUS_AND_TYPE: dict[Kind, tuple[int, str]] = {
    "invalid_request": (0, _INVALID),
    "unsupported_parameter": (400, _INVALID),
    "extra_parameter": (400, _INVALID),
    "unprocessable": (400, _INVALID),
    "auth": (401, "authentication_error"),
    "forbidden": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "model_not_found": (404, "not_found_error"),
    "method_not_allowed": (405, _INVALID),
    "request_timeout": (408, _INVALID),
    "too_large": (413, "request_too_large"),
    "unsupported_media_type": (415, _INVALID),
    "content_filter": (400, _INVALID),
    "rate_limit": (429, "rate_limit_error"),
    "upstream_timeout": (504, "timeout_error"),
    "upstream_unavailable": (503, "api_error"),
    "upstream_unreachable": (502, "api_error"),
    "upstream_invalid_response": (502, "api_error"),
    "upstream_auth_failed": (502, "api_error"),
    "permission": (502, "permission_error"),
    "upstream_error": (0, "api_error"),
    "overloaded": _OVERLOADED,
    "internal": (500, "api_error"),
}

# code: the same, for faults that Anthropic tells apart from others of their kind
_BY_CODE: dict[str | None, tuple[int, str]] = {QUOTA: (402, "billing_error"), OVERLOADED: _OVERLOADED}

THREADS = "thread_unsupported_request"
"""The code after which Anthropic's packages send the whole conversation instead of continuing a thread."""

_CODES = frozenset({THREADS})
"""The codes that an error has in its details."""

_TOO_LONG = "prompt is too long"


def write_fault(fault: Fault, ctx: Context) -> Reply:
    return make_reply(_find_row(fault)[0] or fault.status, error_body(fault, ctx), fault)


def error_body(fault: Fault, ctx: Context) -> JsonObject:
    """Return the body of an error reply, which is also the data of an error event in a stream."""
    error: JsonObject = {"type": _find_row(fault)[1], "message": _describe(fault)}
    if fault.code in _CODES:
        error["details"] = {"error_code": fault.code}
    return {"type": "error", "error": error, "request_id": ctx.request_id or None}


def _find_row(fault: Fault) -> tuple[int, str]:
    if fault.answered == _OVERLOADED[0]:
        return _OVERLOADED
    return _BY_CODE.get(fault.code) or _STATUS_AND_TYPE[fault.kind]


def _describe(fault: Fault) -> str:
    """The message with the parameter's path, as Anthropic writes it: `messages.0.content: ...`."""
    message, path = describe(fault), ".".join(map(str, fault.path))
    if fault.param:
        message = message.replace(fault.param, path)
        message = message if path in message else f"{path}: {message}"
    if fault.code == CONTEXT_LENGTH and _TOO_LONG not in message:
        message = f"{_TOO_LONG}: {message}"
    return message + describe_others(fault)
