"""Read the many shapes of providers' errors into one.

A JSON body is read from the inside out. An error inside another one, as an object, in a list or as JSON in a string,
takes precedence over the outer one:

    error: {...}                          OpenAI, Azure, Anthropic, Google, also in a list
    errors: [...]                         Cloudflare, JSON:API
    external_model_message: {...}         Databricks; the message of the outer error is put before its own
    message: {...}, detail: {...}         gateways that wrap another's error
    metadata: {raw: ...}                  OpenRouter: what the provider behind it sent
    fault: {faultstring, detail}          Apigee
    base_resp: {status_code, status_msg}  MiniMax
    ResponseMetadata: {Error: {...}}      Volcengine; Response: {Error: {...}} Tencent

In one object each fact can be in several places; the first one that is not empty counts:

    message   the keys of _MESSAGES as strings or lists of strings; the sentences inside detail
    code      code; the type of the first entry in detail
    path      loc of the first entry in detail; param; target
    value     value or input of the first entry in detail
    words     code, the keys of _LABELS, a status that is a word (Google), the reasons in details, and the codes down
              the chain of innererror
    status    the keys of _STATUSES: a status of HTTP as an integer, a float or a string
    wait      the keys of `retry_after.read_wait`, there and in details and metadata
    headers   metadata.headers (OpenRouter)

A text that is no JSON is a message, possibly after a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .error_texts import extract_text, parse_provider_path, read_word, split_code, truncate
from .jsontext import read_any
from .paths import Path, format_path
from .retry_after import read_wait

__all__ = ["MAX_RAW", "NativeError", "parse_body", "recognize", "recognize_text"]

MAX_RAW = 65536
_NESTED = (
    "error", "Error", "errors", "external_model_message", "message", "detail", "fault", "base_resp",
    "ResponseMetadata", "Response",
)  # fmt: skip
_MESSAGES = (
    "message", "Message", "detail", "error_description", "error_message", "errorMessage", "error_msg", "err_msg",
    "msg", "status_msg", "faultstring", "title", "reason", "errors",
)  # fmt: skip
_LABELS = ("error_code", "error_type", "type", "Code", "errorCode", "errorType", "errorcode", "__type")
_STATUSES = ("status", "status_code", "statusCode", "code")
_DEPTH = 4


@dataclass(slots=True)
class NativeError:
    """An error as the provider reported it, before its kind is decided."""

    message: str = ""
    code: str | None = None
    path: Path = ()
    value: Any = None
    words: list[str] = field(default_factory=list)
    status: int = 0
    wait: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def merge_inner(self, inner: NativeError) -> NativeError:
        """Return the facts of `inner`, an error inside this one, completed by the facts of this one."""
        return NativeError(
            inner.message or self.message,
            inner.code or self.code,
            inner.path or self.path,
            self.value if inner.value is None else inner.value,
            inner.words + self.words,
            self.status or inner.status,
            self.wait if inner.wait is None else inner.wait,
            {**self.headers, **inner.headers},
        )


def recognize(body: Any, depth: int = 0) -> NativeError:
    """Read the error in a parsed JSON body of any known shape; the message is empty if the shape is unknown."""
    if isinstance(body, list):
        body = next((one for one in body if isinstance(one, dict)), {})
    own = _read_object(body)
    for key, inside in _list_inner_errors(body) if depth < _DEPTH else ():
        inner = recognize(inside, depth + 1)
        if key == "external_model_message" and own.message and inner.message:
            inner.message = truncate(f"{own.message}: {inner.message}")
        own = own.merge_inner(inner)
    return own


def _list_inner_errors(body: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for key in _NESTED:
        inside = _find_object(body.get(key))
        if inside is not None and not (key == "detail" and inside.keys() & {"loc", "msg"}):
            yield key, inside
    raw = _read_metadata(body).get("raw")
    inside = _find_object(raw)
    if inside is not None or (isinstance(raw, str) and raw.strip()):
        yield "raw", {"message": raw} if inside is None else inside


def _read_object(body: Mapping[str, Any]) -> NativeError:
    """Read the facts in one object, without those of errors inside it."""
    entries = _list_entries(body)
    path, value, sentence, first_label = _read_entries(entries)
    path = path or next(
        (parse_provider_path(name) for name in _list_names(body, entries) if parse_provider_path(name)), ()
    )
    message = next((text for text in map(_read_text, map(body.get, _MESSAGES)) if text), "")
    title = _read_text(body.get("error"))
    code = read_word(body.get("code"))
    reasons = (read_word(entry.get("reason")) for entry in entries)
    labels = [code, first_label, *(read_word(body.get(key)) for key in _LABELS), _read_status_name(body)]
    labels += [title if message else None, *reasons, *_list_inner_codes(body.get("innererror"))]
    metadata = _read_metadata(body)
    labels.append("flagged_input" if "flagged_input" in metadata else None)
    waits = (read_wait(place) for place in (body, metadata, *entries))
    headers = metadata.get("headers")
    return NativeError(
        message=message or title or sentence,
        code=code or first_label,
        path=path,
        value=value,
        words=[label.rpartition("#")[2] for label in labels if label and _is_label(label)],
        status=_read_status(body),
        wait=next((wait for wait in waits if wait is not None), None),
        headers={name.lower(): str(text) for name, text in headers.items()} if isinstance(headers, dict) else {},
    )


def _is_label(text: str) -> bool:
    """False for the address that is the type of a problem (RFC 9457)."""
    return "://" not in text and text != "about:blank"


def _read_metadata(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}


def _list_entries(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = body.get("detail", body.get("details"))
    several = found if isinstance(found, list) else [found]
    return [entry for entry in several[:20] if isinstance(entry, dict)]


def _read_entries(entries: list[dict[str, Any]]) -> tuple[Path, Any, str, str | None]:
    """Return path, value, the sentences of all entries, and type; path, value and type are those of the first entry."""
    if not entries:
        return (), None, "", None
    first = entries[0]
    sentences = []
    for entry in entries:
        if sentence := _read_text(entry.get("msg")):
            where = format_path(_read_loc(entry.get("loc")))
            sentences.append(f"{where}: {sentence}" if where else sentence)
    value = first.get("input") if first.get("value") is None else first.get("value")
    kind = read_word(first.get("type")) if "loc" in first else None
    return _read_loc(first.get("loc")), value, truncate("; ".join(sentences)), kind


def _read_loc(loc: Any) -> Path:
    """Read `["body", "messages", "0"]` as `("messages", 0)`: digits are a position, except in the first part."""
    if isinstance(loc, str):
        return parse_provider_path(loc.removeprefix("body."))
    if not isinstance(loc, list):
        return ()
    parts = [part for part in loc if isinstance(part, str | int) and not isinstance(part, bool)]
    if parts[:1] == ["body"]:
        parts = parts[1:]
    return tuple(_parse_position(part) if place else part for place, part in enumerate(parts[:32]))


def _parse_position(part: str | int) -> str | int:
    return int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part


def _list_names(body: Mapping[str, Any], entries: list[dict[str, Any]]) -> Iterable[str]:
    for place in (body.get("param"), body.get("target"), *(entry.get("target") for entry in entries)):
        if isinstance(place, str):
            yield place


def _list_inner_codes(inner: Any) -> Iterable[str]:
    for _ in range(_DEPTH):
        if not isinstance(inner, dict):
            return
        if code := read_word(inner.get("code")):
            yield code
        inner = inner.get("innererror")


def _read_status(body: Mapping[str, Any]) -> int:
    for key in _STATUSES:
        value = body.get(key)
        text = read_word(int(value) if isinstance(value, float) and value.is_integer() else value)
        if text and re.fullmatch("[45][0-9][0-9]", text):
            return int(text)
    return 0


def _read_status_name(body: Mapping[str, Any]) -> str | None:
    """Return Google's name of a status, `RESOURCE_EXHAUSTED`; None for a number."""
    text = read_word(body.get("status"))
    return None if text is None or text.isdecimal() else text


def _read_text(value: Any) -> str:
    if isinstance(value, list):
        value = "; ".join(one for one in value[:20] if isinstance(one, str))
    return extract_text(value[:MAX_RAW]) if isinstance(value, str) else ""


def _find_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = parse_body(value.encode("utf-8", "replace"))
    if isinstance(value, list):
        value = next((one for one in value if isinstance(one, dict)), None)
    return value if isinstance(value, dict) else None


def recognize_text(text: str) -> NativeError:
    """Read the error in a body that is no JSON: plain text or HTML."""
    code, message = split_code(extract_text(text[:MAX_RAW]))
    return NativeError(message, words=[code] if code else [])


def parse_body(raw: bytes) -> Any:
    """Parse the JSON of a body, or of one server-sent event; None if it is no JSON."""
    try:
        return read_any(raw.strip().removeprefix(b"data:"))
    except ValueError:
        return None
