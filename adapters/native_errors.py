"""Read providers' errors into faults: their kind, and the status and code that a client gets.

Every dialect reads every shape of error (`native_shapes`), because a gateway may have written it. A dialect adds the
meaning of its own codes. An error status that is clear by itself decides the kind. For 400, 404, 422 and the like the
codes refine it, and after them the sentence (`error_texts`). If an error has a success status, the status in the body
decides, or the codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

from .call import Context, Reply
from .error_texts import default_message, extract_text, find_hint, truncate
from .faults import Fault, Kind
from .native_shapes import MAX_RAW, NativeError, parse_body, recognize, recognize_text
from .retry_after import read_retry_after

__all__ = ["Words", "read_error_object", "read_fault", "read_stray_text"]

Words: TypeAlias = Mapping[str, Kind]
"""A dialect's own codes and labels, in snake case -> the kind of fault that they mean."""

_MAX_DETAILS = 2048
_MAX_VALUE = 500

COMMON: Words = {
    "invalid_request": "invalid_request",
    "invalid_request_error": "invalid_request",
    "bad_request": "invalid_request",
    "bad_request_error": "invalid_request",
    "invalid_prompt": "invalid_request",
    "context_length_exceeded": "invalid_request",
    "invalid_api_key": "upstream_auth_failed",
    "authentication_error": "upstream_auth_failed",
    "unauthorized": "upstream_auth_failed",
    "permission_error": "upstream_auth_failed",
    "not_found": "not_found",
    "not_found_error": "not_found",
    "model_not_found": "model_not_found",
    "extra_forbidden": "extra_parameter",
    "unknown_parameter": "extra_parameter",
    "unsupported_parameter": "unsupported_parameter",
    "unsupported_value": "unsupported_parameter",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "request_too_large": "too_large",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "insufficient_quota": "rate_limit",
    "too_many_requests": "rate_limit",
    "timeout": "upstream_timeout",
    "timeout_error": "upstream_timeout",
    "upstream_timeout": "upstream_timeout",
    "overloaded_error": "upstream_unavailable",
    "service_unavailable": "upstream_unavailable",
    "service_unavailable_error": "upstream_unavailable",
    "server_error": "upstream_error",
    "api_error": "upstream_error",
    "model_error": "upstream_error",
    "internal_server_error": "upstream_error",
}
"""Codes that many servers have copied from OpenAI and from one another."""

_BY_STATUS: Mapping[int, Kind] = {
    401: "upstream_auth_failed",
    403: "upstream_auth_failed",
    408: "upstream_timeout",
    413: "too_large",
    429: "rate_limit",
    503: "upstream_unavailable",
    504: "upstream_timeout",
    529: "upstream_unavailable",
}
_GENERAL: Mapping[int, Kind] = {404: "not_found", 422: "unprocessable"}
_KEEP_STATUS = frozenset({"invalid_request", "unsupported_parameter", "extra_parameter", "upstream_error"})
_TOO_GENERAL = frozenset({"invalid_request", "unprocessable", "not_found", "upstream_error"})
_ONE_CODE = frozenset({"content_filter", "model_not_found", "upstream_auth_failed"})


def read_fault(reply: Reply, ctx: Context, words: Words | None = None) -> Fault:
    """Read the fault that a provider's error reply reports. Never raises, for any status, headers and bytes.

    It reads `reply.body`, or `reply.raw` if the body is empty. Of a text that is no JSON it reads the first 64 KiB.
    """
    fault = _read(reply, read_retry_after(reply.headers, ctx.clock()), words or {})
    fault.answered = reply.status
    return fault


def _read(reply: Reply, retry_after: float | None, words: Words) -> Fault:
    if 300 <= reply.status < 400:
        return Fault("upstream_invalid_response", _REDIRECT.format(reply.status), code="upstream_redirect")
    body = reply.body or parse_body(reply.raw)
    if isinstance(body, dict | list):
        native = recognize(body)
    else:
        text = body if isinstance(body, str) else _decode(reply.raw)
        if text is None and reply.status >= 500:
            return Fault("upstream_invalid_response", default_message(reply.status), code="upstream_invalid_body")
        native = recognize_text(text or "")
    return _build_fault(native, reply.status, words, body, retry_after)


def read_error_object(body: Mapping[str, Any], status: int = 200, words: Words | None = None) -> Fault:
    """Read the fault that an error object reports, in a stream or in a reply with a success status. Never raises."""
    return _build_fault(recognize(dict(body)), status, words or {}, body)


def read_stray_text(text: bytes) -> Fault:
    """Read the fault that a bare text between the events of a stream reports. Never raises."""
    sentence = extract_text(text[:MAX_RAW].decode("utf-8", "replace")) or "(not readable)"
    if sentence.startswith("Engine callback timeout"):
        return Fault("upstream_timeout", sentence, code="upstream_timeout")
    if sentence.startswith("Failed to get engine response"):
        return Fault("upstream_error", sentence, code="upstream_error")
    message = f"The provider sent a text that belongs to no event: {sentence[:200]}"
    return Fault("upstream_invalid_response", message, code="upstream_invalid_event")


_REDIRECT = "The provider answered with a redirect (status {}), which is never followed: check the provider's base_url"
_REFUSED = "The provider refused the proxy's own credentials: whoever runs the proxy has to check the provider's key"


def _build_fault(native: NativeError, status: int, words: Words, body: Any, retry_after: float | None = None) -> Fault:
    """Decide the kind and the status, and make the fault."""
    text = native.message
    found = find_hint(text)
    if not 400 <= status <= 599:
        status = native.status
    kind = _decide_kind(native, status, words, found.kind)
    provider_code = next(iter(native.words), None)
    if kind == "upstream_auth_failed":
        return Fault(kind, _REFUSED, code=kind, provider_code=provider_code, retry_after=retry_after)
    return Fault(
        kind,
        text or default_message(status or 200),
        native.path or found.path,
        _value_if_small(found.value if native.value is None else native.value, _MAX_VALUE),
        status=_decide_status(kind, status),
        code=kind if kind in _ONE_CODE else native.code,
        provider_code=provider_code,
        details=_details(body),
        retry_after=retry_after,
    )


def _decide_kind(native: NativeError, status: int, words: Words, hinted: Kind | None) -> Kind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return "upstream_error"
    means = [words.get(_snake(one)) or COMMON.get(_snake(one)) for one in native.words]
    known = [kind for kind in [*means, hinted] if kind]
    if status == 0:
        known.append("upstream_error")
    fine = [kind for kind in known if kind not in _TOO_GENERAL]
    if status == 0 or fine:
        return (fine or known)[0]
    return _GENERAL.get(status, "invalid_request")


def _decide_status(kind: Kind, status: int) -> int:
    """Return the provider's status if it fits the kind, 502 for an error without one, else 0: the kind's own."""
    if kind == "upstream_error" and status == 0:
        return 502
    return status if kind in _KEEP_STATUS else 0


def _decode(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _snake(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")


def _value_if_small(value: Any, size: int) -> Any:
    """Return the value if its JSON has at most `size` bytes, else None."""
    try:
        return value if len(orjson.dumps(value)) <= size else None
    except TypeError:
        return None


def _details(body: Any) -> Any:
    """Return the provider's body if it is small, else as many of its members as fit in 2 KiB."""
    if not isinstance(body, dict):
        return _value_if_small(body, _MAX_DETAILS) if isinstance(body, list) else None
    if (whole := _value_if_small(body, _MAX_DETAILS)) is not None:
        return whole
    kept: dict[str, Any] = {}
    for key, value in list(body.items())[:50]:
        kept[key] = truncate(value, 200) if isinstance(value, str) else value
        if _value_if_small(kept, _MAX_DETAILS) is None:
            del kept[key]
    return kept or None
