"""Faults in the form of the MindIE OpenAI-compatible API: exactly `{error, error_type}`.

Every error in a body is 422, also an unknown model. The server has neither 429 nor gateway statuses, so the proxy does
not write them; a gateway's status from a provider is passed through.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.error_replies import describe_others, describe_with_parameter, make_reply
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.jsontext import SYNTAX_CODES
from dragoman.adapters.native_errors import Words

__all__ = ["WORDS", "error_body", "write_fault"]

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
_STATUS_AND_TYPE: dict[Kind, tuple[int, str]] = {
    "invalid_request": _INVALID,
    "unsupported_parameter": _INVALID,
    "extra_parameter": _INVALID,
    "unprocessable": _INVALID,
    "auth": (401, "Unauthorized"),
    "forbidden": (403, _BAD),
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
    "permission": (502, "Incomplete Generation"),
    "upstream_error": _INCOMPLETE,
    "overloaded": _UNAVAILABLE,
    "internal": _INCOMPLETE,
}


# Beginnings of the server's own sentences, which clients look for: by kind, by code, or by parameter and code.
_PARSING = "Failed to parse request context to json:"
_NO_MODEL = "Request contains not model or model null."
_NO_MESSAGES = "Request param messages not arr or arr is empty:"
_SENTENCES: Mapping[str | tuple[str | None, str | None], str] = {
    "model_not_found": "Model not found.",
    **dict.fromkeys(SYNTAX_CODES, _PARSING),
    ("model", "missing_required_parameter"): _NO_MODEL,
    ("model", "invalid_type"): "Request param model must be string.",
    ("model", "invalid_value"): "Model not found.",
    ("messages", "missing_required_parameter"): _NO_MESSAGES,
    ("messages", "invalid_type"): _NO_MESSAGES,
    ("messages", "array_below_min_length"): _NO_MESSAGES,
}


def write_fault(fault: Fault, ctx: Context) -> Reply:
    """Keep a provider's 5xx; give every other fault the status that the server has for its kind."""
    status = fault.status if min(fault.status, fault.answered) >= 500 else _STATUS_AND_TYPE[fault.kind][0]
    return make_reply(status, error_body(fault), fault)


def error_body(fault: Fault) -> JsonObject:
    """Return the body of an error reply, and of an error event in a stream."""
    sentence, text = _sentence(fault), describe_with_parameter(fault)
    text = f"{sentence} {text}" if sentence and sentence not in text else text
    text += describe_others(fault)
    return {"error": text, "error_type": _STATUS_AND_TYPE[fault.kind][1]}


def _sentence(fault: Fault) -> str | None:
    null = fault.code == "invalid_type" and fault.value is None
    place = (fault.param, "missing_required_parameter" if null else fault.code)
    return _SENTENCES.get(fault.kind) or _SENTENCES.get(fault.code or "") or _SENTENCES.get(place)
