"""Faults in OpenAI's form, from the OpenAI OpenAPI document 2.3: `{"error": {message, type, param, code}}`.

If there are several reasons, `error.details` lists all of them: `[{param, code, message}, ...]`.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_replies import describe, make_reply, name_others, native_details
from dragoman.adapters.faults import Fault, Kind

__all__ = ["error_body", "write_fault"]

# kind: type, code of a fault without a code of its own
_TYPE_AND_CODE: dict[Kind, tuple[str, str | None]] = {
    "invalid_request": ("invalid_request_error", None),
    "unsupported_parameter": ("invalid_request_error", "unsupported_parameter"),
    "extra_parameter": ("invalid_request_error", "unknown_parameter"),
    "unprocessable": ("invalid_request_error", None),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "forbidden": ("invalid_request_error", "forbidden"),
    "not_found": ("invalid_request_error", "not_found"),
    "model_not_found": ("invalid_request_error", "model_not_found"),
    "method_not_allowed": ("invalid_request_error", "method_not_allowed"),
    "request_timeout": ("invalid_request_error", "request_timeout"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "unsupported_media_type": ("invalid_request_error", "unsupported_media_type"),
    "content_filter": ("invalid_request_error", "content_filter"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "upstream_timeout": ("server_error", "upstream_timeout"),
    "upstream_unavailable": ("server_error", "upstream_unavailable"),
    "upstream_unreachable": ("server_error", "upstream_unreachable"),
    "upstream_invalid_response": ("server_error", "bad_upstream"),
    "upstream_auth_failed": ("server_error", "upstream_auth_failed"),
    "permission": ("permission_error", "permission_denied"),
    "upstream_error": ("server_error", "upstream_error"),
    "overloaded": ("server_error", "overloaded"),
    "internal": ("server_error", "internal_error"),
}


def write_fault(fault: Fault, ctx: Context) -> Reply:
    return make_reply(fault.status, error_body(fault), fault)


def error_body(fault: Fault) -> JsonObject:
    """Return the body of an error reply, and of an error event in a stream."""
    kind, _ = _TYPE_AND_CODE[fault.kind]
    message = describe(fault) + name_others(fault)
    error: JsonObject = {"message": message, "type": kind, "param": fault.param, "code": _code(fault)}
    if fault.others:
        error["details"] = [{"param": one.param, "code": _code(one), "message": describe(one)} for one in fault.reasons]
    elif details := native_details(fault):
        error["details"] = details
    return {"error": error}


def _code(fault: Fault) -> str | None:
    return fault.code or _TYPE_AND_CODE[fault.kind][1]
