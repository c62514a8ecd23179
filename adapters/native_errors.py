"""Read providers' errors into faults: their kind, and the status and code that a client gets.

Every dialect reads every shape of error (`native_shapes`), because a gateway may have written it. The first row that
applies decides the kind:

    a status 401, 402                               upstream_auth_failed, rate_limit (insufficient_quota)
    a code or sentence of `error_meanings`          what its row says
    another status that is clear by itself          _BY_STATUS
    a code of the dialect or of `COMMON`            what it says, if that is less general than the status
    a sentence with a parameter's name              `error_texts`
    a general status                                _GENERAL

An error with a success status has the status in its body, or none. A 403 without a row is `permission`, with the
provider's text; if the text is about credentials, or gives no reason, it is `upstream_auth_failed`, without the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from .call import Context, Headers, Reply
from .error_meanings import COMMON, QUOTA, Meaning, Words, find_meaning, is_about_credentials, to_snake_case
from .error_texts import default_message, extract_text, find_hint, truncate
from .faults import Fault, Kind
from .native_shapes import MAX_RAW, NativeError, parse_body, recognize, recognize_text
from .retry_after import find_wait, read_reset, read_retry_after

__all__ = ["Words", "read_error_object", "read_fault", "read_stray_text"]

_MAX_DETAILS = 2048
_MAX_VALUE = 500

_DECISIVE: Mapping[int, Meaning] = {
    401: Meaning("upstream_auth_failed"),
    402: Meaning("rate_limit", QUOTA),  # DeepSeek, OpenRouter, Hugging Face, Together: no credit is left
}
_BY_STATUS: Mapping[int, Kind] = {
    408: "upstream_timeout",
    413: "too_large",
    429: "rate_limit",
    503: "upstream_unavailable",
    504: "upstream_timeout",
    529: "upstream_unavailable",
}
_GENERAL: Mapping[int, Kind] = {403: "permission", 404: "not_found", 422: "unprocessable"}
_KEEP_STATUS = frozenset({"invalid_request", "unsupported_parameter", "extra_parameter", "upstream_error"})
_TOO_GENERAL = frozenset({"invalid_request", "unprocessable", "not_found", "upstream_error"})
_ONE_CODE: Mapping[Kind, str] = {
    "content_filter": "content_filter",
    "model_not_found": "model_not_found",
    "permission": "permission_denied",
}
_CODE_HEADERS = ("x-ms-error-code", "x-amzn-errortype")  # Azure; AWS, which appends an address after a colon
_PASSING = frozenset({"rate_limit", "upstream_unavailable"})


def read_fault(reply: Reply, ctx: Context, words: Words | None = None) -> Fault:
    """Read the fault that a provider's error reply reports. Never raises, for any status, headers and bytes.

    It reads `reply.body`, or `reply.raw` if the body is empty. Of a text that is no JSON it reads the first 64 KiB.
    """
    fault = _read(reply, words or {}, ctx.clock())
    fault.answered = reply.status
    return fault


def _read(reply: Reply, words: Words, now: float) -> Fault:
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
    native.words += [code.partition(":")[0] for name in _CODE_HEADERS if (code := reply.headers.get(name))]
    fault = _build_fault(native, reply.status, words, body)
    fault.retry_after = _read_wait(fault, native, reply.headers, now)
    return fault


def read_error_object(
    body: Mapping[str, Any], status: int = 200, words: Words | None = None, now: float | None = None
) -> Fault:
    """Read the fault that an error object reports, in a stream or in a reply with a success status. Never raises.

    `now` is in Unix seconds; without it a time at which a limit is reset is not read.
    """
    native = recognize(dict(body))
    fault = _build_fault(native, status, words or {}, body)
    fault.retry_after = _read_wait(fault, native, {}, now)
    return fault


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


def _build_fault(native: NativeError, status: int, words: Words, body: Any) -> Fault:
    """Decide the kind and the status, and make the fault."""
    text = native.message
    found = find_hint(text)
    if not 400 <= status <= 599:
        status = native.status
    decisive = _DECISIVE.get(status) or find_meaning(native.words, text)
    kind = decisive.kind if decisive else _decide_kind(native, status, words, found.kind)
    provider_code = next(iter(native.words), None)
    if kind == "upstream_auth_failed":
        return Fault(kind, _REFUSED, code=kind, provider_code=provider_code)
    return Fault(
        kind,
        text or default_message(status or 200),
        native.path or found.path,
        _value_if_small(found.value if native.value is None else native.value, _MAX_VALUE),
        status=0 if decisive else _decide_status(kind, status),
        code=decisive.code if decisive else _ONE_CODE.get(kind, native.code),
        provider_code=provider_code,
        details=_details(body),
    )


def _decide_kind(native: NativeError, status: int, words: Words, hinted: Kind | None) -> Kind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return "upstream_error"
    means = [words.get(word) or COMMON.get(word) for word in map(to_snake_case, native.words)]
    known = [kind for kind in [*means, hinted] if kind]
    if status == 0:
        known.append("upstream_error")
    fine = [kind for kind in known if kind not in _TOO_GENERAL]
    kind = (fine or known)[0] if status == 0 or fine else _GENERAL.get(status, "invalid_request")
    return "upstream_auth_failed" if kind == "permission" and is_about_credentials(native.message) else kind


def _decide_status(kind: Kind, status: int) -> int:
    """Return the provider's status if it fits the kind, 502 for an error without one, else 0: the kind's own."""
    if kind == "upstream_error" and status == 0:
        return 502
    return status if kind in _KEEP_STATUS else 0


def _read_wait(fault: Fault, native: NativeError, headers: Headers, now: float | None) -> float | None:
    """Return the seconds that the provider asks to wait; None if it asks for none.

    A body and the headers about limits count only for what passes by itself: OpenAI sends the latter with every reply.
    """
    known: tuple[float | None, ...] = (read_retry_after(headers, now), read_retry_after(native.headers, now))
    if fault.kind in _PASSING:
        known += (native.wait, find_wait(native.message), read_reset(headers, now), read_reset(native.headers, now))
    return next((seconds for seconds in known if seconds is not None), None)


def _decode(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


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
