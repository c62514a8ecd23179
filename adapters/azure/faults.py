"""Faults in the forms of the Azure AI model inference REST reference. All carry the header `x-ms-error-code`.

401 404 429    {error, message, status}; 404 also if the model does not support the modality
422            {code, detail: {loc: ["body", ...], value}, error, message, status}: valid, but the model cannot do it
all others     {code, error, message, param, status}; extra parameters also have the service's `detail` text

`error` is a title in the documented profile. In the actual one it is the object of Azure's other services,
`{code, message, status, param, details: [{loc, type, msg, input}]}`: azure-core shows the message of no other form.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_replies import describe, format_value, keep_if_small, make_reply, name_others
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.native_errors import Words

__all__ = ["WORDS", "error_body", "error_event", "write_fault"]

WORDS: Words = {
    "parameter_not_supported": "unsupported_parameter",
    "deployment_not_found": "model_not_found",
    "unknown_model": "model_not_found",
    "not_found_error": "not_found",
    "unauthorized_error": "upstream_auth_failed",
    "access_denied": "permission",
    "too_many_requests_error": "rate_limit",
    "internal_server_error": "upstream_error",
}

# kind: status (0: the fault's own), code of a fault without a code of its own
_STATUS_AND_CODE: dict[Kind, tuple[int, str]] = {
    "invalid_request": (400, "bad_request"),
    "unsupported_parameter": (422, "parameter_not_supported"),
    "extra_parameter": (400, "extra_parameter"),
    "unprocessable": (422, "unprocessable_content"),
    "auth": (401, "unauthorized"),
    "forbidden": (403, "forbidden"),
    "not_found": (404, "not_found"),
    "model_not_found": (404, "model_not_found"),
    "method_not_allowed": (405, "method_not_allowed"),
    "request_timeout": (408, "request_timeout"),
    "too_large": (413, "request_too_large"),
    "unsupported_media_type": (415, "unsupported_media_type"),
    "content_filter": (400, "content_filter"),
    "rate_limit": (429, "too_many_requests"),
    "upstream_timeout": (504, "upstream_timeout"),
    "upstream_unavailable": (503, "upstream_unavailable"),
    "upstream_unreachable": (502, "upstream_unreachable"),
    "upstream_invalid_response": (502, "bad_upstream"),
    "upstream_auth_failed": (502, "upstream_auth_failed"),
    "permission": (502, "permission_denied"),
    "upstream_error": (0, "upstream_error"),
    "overloaded": (503, "overloaded"),
    "internal": (500, "internal_error"),
}
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def write_fault(fault: Fault, ctx: Context) -> Reply:
    body = error_body(fault, ctx.profile)
    return make_reply(body["status"], body, fault, x_ms_error_code=_code(fault))


def error_body(fault: Fault, profile: str = "actual") -> JsonObject:
    """Return the body of an error reply; its `status` is the HTTP status."""
    body = _flat_body(fault)
    if profile == "documented":
        return body
    if fault.kind == "extra_parameter":
        body["detail"] = body["message"]
    return {**body, "error": _error_object(fault)}


def _flat_body(fault: Fault) -> JsonObject:
    status = _status(fault)
    title = _TITLES.get(status, "Internal Server Error" if status >= 500 else "Bad Request")
    body: JsonObject = {"status": status, "error": title, "message": _message(fault)}
    if status in (401, 404, 429):
        return body
    body["code"] = _code(fault)
    if status == 422:
        body["detail"] = {"loc": _location(fault), "value": format_value(fault.value)}
    else:
        body["param"] = fault.param
    return body


def _error_object(fault: Fault) -> JsonObject:
    error: JsonObject = {"code": _code(fault), "message": _message(fault), "status": _status(fault)}
    error["param"] = fault.param
    if fault.path or fault.others:
        error["details"] = [*map(_detail, fault.reasons)]
    return error


def _detail(fault: Fault) -> JsonObject:
    reason = {"loc": _location(fault), "type": _code(fault), "msg": describe(fault)}
    return {**reason, "input": keep_if_small(fault.value)}


def error_event(fault: Fault) -> JsonObject:
    """Return the error event of a stream."""
    return {"error": _error_object(fault)}


def _message(fault: Fault) -> str:
    return describe(fault) + name_others(fault)


def _location(fault: Fault) -> list[str]:
    return ["body", *map(str, fault.path)]


def _status(fault: Fault) -> int:
    return _find_row(fault)[0] or fault.status


def _code(fault: Fault) -> str:
    word = _find_row(fault)[1]
    return word if word in ("parameter_not_supported", "content_filter") else fault.code or word


def _find_row(fault: Fault) -> tuple[int, str]:
    """Return the row of the fault's kind. A modality that a model does not serve has no route there: 404."""
    return _STATUS_AND_CODE["not_found" if fault.code == "unsupported_protocol" else fault.kind]
