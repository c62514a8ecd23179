"""Faults in the form of the Databricks Foundation Model API: `{error_code, message}`.

If there are several reasons, `details` lists all of them as field violations, which Databricks' own client has typed.
A body never has a key `error` or `detail`: Databricks' own client reads the first as the message and the second as a
SCIM error. Only the error event of a stream has `error`, because OpenAI's client looks for it.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_meanings import CONTEXT_LENGTH
from dragoman.adapters.error_replies import describe, describe_with_parameter, make_reply, name_others
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.jsontext import SYNTAX_CODES
from dragoman.adapters.native_errors import Words

__all__ = ["WORDS", "error_body", "error_event", "write_fault"]

WORDS: Words = {
    "invalid_parameter_value": "invalid_request",
    "bad_request": "invalid_request",
    "invalid_state": "invalid_request",
    "already_exists": "invalid_request",
    "resource_already_exists": "invalid_request",
    "aborted": "invalid_request",
    "cancelled": "invalid_request",
    "resource_does_not_exist": "model_not_found",
    "request_limit_exceeded": "rate_limit",
    "internal_error": "upstream_error",
    "not_implemented": "upstream_error",
    "data_loss": "upstream_error",
    "unknown": "upstream_error",
}

# kind: status (0: the fault's own), error_code
_STATUS_AND_CODE: dict[Kind, tuple[int, str]] = {
    "invalid_request": (400, "INVALID_PARAMETER_VALUE"),
    "unsupported_parameter": (400, "INVALID_PARAMETER_VALUE"),
    "extra_parameter": (400, "BAD_REQUEST"),
    "unprocessable": (400, "INVALID_PARAMETER_VALUE"),
    "auth": (401, "UNAUTHENTICATED"),
    "forbidden": (403, "PERMISSION_DENIED"),
    "not_found": (404, "RESOURCE_DOES_NOT_EXIST"),
    "model_not_found": (404, "RESOURCE_DOES_NOT_EXIST"),
    "method_not_allowed": (405, "BAD_REQUEST"),
    "request_timeout": (408, "DEADLINE_EXCEEDED"),
    "too_large": (413, "REQUEST_TOO_LARGE"),
    "unsupported_media_type": (415, "BAD_REQUEST"),
    "content_filter": (400, "BAD_REQUEST"),
    "rate_limit": (429, "REQUEST_LIMIT_EXCEEDED"),
    "upstream_timeout": (504, "DEADLINE_EXCEEDED"),
    "upstream_unavailable": (503, "TEMPORARILY_UNAVAILABLE"),
    "upstream_unreachable": (502, "INTERNAL_ERROR"),
    "upstream_invalid_response": (502, "INTERNAL_ERROR"),
    "upstream_auth_failed": (502, "INTERNAL_ERROR"),
    "permission": (502, "PERMISSION_DENIED"),
    "upstream_error": (0, "INTERNAL_ERROR"),
    "overloaded": (503, "TEMPORARILY_UNAVAILABLE"),
    "internal": (500, "INTERNAL_ERROR"),
}


_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_UNREADABLE = "Bad request: json:"


def write_fault(fault: Fault, ctx: Context) -> Reply:
    return make_reply(_STATUS_AND_CODE[fault.kind][0] or fault.status, error_body(fault), fault)


def error_body(fault: Fault) -> JsonObject:
    """Return the body of an error reply."""
    if fault.code in SYNTAX_CODES:
        return {"error_code": "BAD_REQUEST", "message": f"{_UNREADABLE} {describe_with_parameter(fault)}"}
    message = _unknown_field_prefix(fault) + describe_with_parameter(fault) + name_others(fault)
    body: JsonObject = {"error_code": _STATUS_AND_CODE[fault.kind][1], "message": message}
    if fault.others:
        reasons = [{"field": one.param or "", "description": describe(one)} for one in fault.reasons]
        body["details"] = [{"@type": _BAD_REQUEST, "field_violations": reasons}]
    return body


def _unknown_field_prefix(fault: Fault) -> str:
    """Return how the service's message about an unknown field begins; empty for any other fault."""
    names = [part for part in fault.path if isinstance(part, str)]
    if fault.kind != "extra_parameter" or not names or "unknown field" in fault.message:
        return ""
    return f'{_UNREADABLE} unknown field "{names[-1]}": '


def error_event(fault: Fault) -> JsonObject:
    """Return the error event of a stream: the body, and the error object that OpenAI's client looks for."""
    body = error_body(fault)
    code = fault.code if fault.code == CONTEXT_LENGTH else body["error_code"]
    error = {"message": body["message"], "type": fault.kind, "param": fault.param, "code": code}
    return {"error": error, **body}
