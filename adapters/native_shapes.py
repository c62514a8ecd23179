"""Read the many shapes of providers' errors into one.

A JSON body is read from the inside out. An error inside another one, as an object or as JSON in a string, takes
precedence over the outer one:

    error: {...}                          OpenAI, Azure
    external_model_message: {...}         Databricks; the message of the outer error is put before its own
    message: {...}, detail: {...}         gateways that wrap another's error

In one object each fact can be in several places; the first one that is not empty counts:

    message   message, detail, error as strings; the sentences inside detail
    code      code; the type of the first entry in detail
    path      loc of the first entry in detail; param; target
    value     value or input of the first entry in detail
    words     code, error_code, error_type, type, and the codes down the chain of innererror
    status    status, code

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

__all__ = ["MAX_RAW", "NativeError", "parse_body", "recognize", "recognize_text"]

MAX_RAW = 65536
_NESTED = ("error", "external_model_message", "message", "detail")
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

    def merge_inner(self, inner: NativeError) -> NativeError:
        """Return the facts of `inner`, an error inside this one, completed by the facts of this one."""
        return NativeError(
            inner.message or self.message,
            inner.code or self.code,
            inner.path or self.path,
            self.value if inner.value is None else inner.value,
            inner.words + self.words,
            self.status or inner.status,
        )


def recognize(body: Any, depth: int = 0) -> NativeError:
    """Read the error in a parsed JSON body of any known shape; the message is empty if the shape is unknown."""
    if isinstance(body, list):
        body = next((one for one in body if isinstance(one, dict)), {})
    own = _read_object(body)
    for key in _NESTED:
        inside = _find_object(body.get(key))
        if depth == _DEPTH or inside is None or (key == "detail" and inside.keys() & {"loc", "msg"}):
            continue
        inner = recognize(inside, depth + 1)
        if key == "external_model_message" and own.message and inner.message:
            inner.message = truncate(f"{own.message}: {inner.message}")
        own = own.merge_inner(inner)
    return own


def _read_object(body: Mapping[str, Any]) -> NativeError:
    """Read the facts in one object, without those of errors inside it."""
    entries = _list_entries(body)
    path, value, sentence, first_label = _read_entries(entries)
    texts = [_read_text(body.get(key)) for key in ("message", "detail", "error")]
    path = path or next(
        (parse_provider_path(name) for name in _list_names(body, entries) if parse_provider_path(name)), ()
    )
    labels = [read_word(body.get(key)) for key in ("code", "error_code", "error_type", "type")]
    if texts[0] and texts[2]:
        labels.append(read_word(body["error"]))
    inner_codes = list(_list_inner_codes(body.get("innererror")))
    return NativeError(
        message=next((text for text in texts if text), "") or sentence,
        code=labels[0] or first_label,
        path=path,
        value=value,
        words=[label for label in [labels[0], first_label, *labels[1:], *inner_codes] if label],
        status=_read_status(body),
    )


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
    for key in ("status", "status_code", "code"):
        text = read_word(body.get(key))
        if text and re.fullmatch("[45][0-9][0-9]", text):
            return int(text)
    return 0


def _read_text(value: Any) -> str:
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
