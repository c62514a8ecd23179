"""The shapes that providers' errors have, read into one.

A JSON body is read from the inside out. What is inside another error, as an object or as JSON in a string, wins over
what is written around it:

    error: {...}                          OpenAI, Azure
    external_model_message: {...}         Databricks; what `error` says around it stays in front of the message
    message: {...}, detail: {...}         gateways that wrap another's error

and in one object each fact has its places, the first one filled being taken:

    message   message, detail, error as strings; the sentences inside detail
    code      code; the type of the first entry in detail
    path      loc of the first entry in detail; param; target
    value     value or input of the first entry in detail
    words     code, error_code, error_type, type, and the codes down the chain of innererror
    status    status, code

Text that is no JSON is a message, perhaps behind a code.
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
    """An error as the provider reported it, before it is decided whose fault it is."""

    message: str = ""
    code: str | None = None
    path: Path = ()
    value: Any = None
    words: list[str] = field(default_factory=list)
    status: int = 0

    def merge_inner(self, inner: NativeError) -> NativeError:
        """The facts of `inner`, completed by those of the object that contains it."""
        return NativeError(
            inner.message or self.message,
            inner.code or self.code,
            inner.path or self.path,
            self.value if inner.value is None else inner.value,
            inner.words + self.words,
            self.status or inner.status,
        )


def recognize(body: Any, depth: int = 0) -> NativeError:
    """The error in a parsed JSON body of any known shape; an unknown shape gives an empty message."""
    if isinstance(body, list):
        body = next((one for one in body if isinstance(one, dict)), {})
    own = _own(body)
    for key in _NESTED:
        inside = _object_in(body.get(key))
        if depth == _DEPTH or inside is None or (key == "detail" and inside.keys() & {"loc", "msg"}):
            continue
        inner = recognize(inside, depth + 1)
        if key == "external_model_message" and own.message and inner.message:
            inner.message = truncate(f"{own.message}: {inner.message}")
        own = own.merge_inner(inner)
    return own


def _own(body: Mapping[str, Any]) -> NativeError:
    """What one object says itself."""
    entries = _entries(body)
    path, value, said, first_type = _located(entries)
    texts = [_text(body.get(key)) for key in ("message", "detail", "error")]
    path = path or next((parse_provider_path(name) for name in _names(body, entries) if parse_provider_path(name)), ())
    labels = [read_word(body.get(key)) for key in ("code", "error_code", "error_type", "type")]
    if texts[0] and texts[2]:
        labels.append(read_word(body["error"]))
    inner_codes = list(_inner_codes(body.get("innererror")))
    return NativeError(
        message=next((text for text in texts if text), "") or said,
        code=labels[0] or first_type,
        path=path,
        value=value,
        words=[label for label in [labels[0], first_type, *labels[1:], *inner_codes] if label],
        status=_own_status(body),
    )


def _entries(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = body.get("detail", body.get("details"))
    several = found if isinstance(found, list) else [found]
    return [entry for entry in several[:20] if isinstance(entry, dict)]


def _located(entries: list[dict[str, Any]]) -> tuple[Path, Any, str, str | None]:
    """Path, value and type of the first entry, and the sentences of all."""
    if not entries:
        return (), None, "", None
    first = entries[0]
    sentences = []
    for entry in entries:
        if said := _text(entry.get("msg")):
            where = format_path(_loc(entry.get("loc")))
            sentences.append(f"{where}: {said}" if where else said)
    value = first.get("input") if first.get("value") is None else first.get("value")
    kind = read_word(first.get("type")) if "loc" in first else None
    return _loc(first.get("loc")), value, truncate("; ".join(sentences)), kind


def _loc(loc: Any) -> Path:
    """`["body", "messages", "0"]` -> `("messages", 0)`: digits are a position everywhere but in front."""
    if isinstance(loc, str):
        return parse_provider_path(loc.removeprefix("body."))
    if not isinstance(loc, list):
        return ()
    parts = [part for part in loc if isinstance(part, str | int) and not isinstance(part, bool)]
    if parts[:1] == ["body"]:
        parts = parts[1:]
    return tuple(_position(part) if place else part for place, part in enumerate(parts[:32]))


def _position(part: str | int) -> str | int:
    return int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part


def _names(body: Mapping[str, Any], entries: list[dict[str, Any]]) -> Iterable[str]:
    for place in (body.get("param"), body.get("target"), *(entry.get("target") for entry in entries)):
        if isinstance(place, str):
            yield place


def _inner_codes(inner: Any) -> Iterable[str]:
    for _ in range(_DEPTH):
        if not isinstance(inner, dict):
            return
        if code := read_word(inner.get("code")):
            yield code
        inner = inner.get("innererror")


def _own_status(body: Mapping[str, Any]) -> int:
    for key in ("status", "status_code", "code"):
        text = read_word(body.get(key))
        if text and re.fullmatch("[45][0-9][0-9]", text):
            return int(text)
    return 0


def _text(value: Any) -> str:
    return extract_text(value[:MAX_RAW]) if isinstance(value, str) else ""


def _object_in(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = parse_body(value.encode("utf-8", "replace"))
        if isinstance(value, list):
            value = next((one for one in value if isinstance(one, dict)), None)
    return value if isinstance(value, dict) else None


def recognize_text(text: str) -> NativeError:
    """The error in a body that is no JSON: plain text or HTML."""
    code, message = split_code(extract_text(text[:MAX_RAW]))
    return NativeError(message, words=[code] if code else [])


def parse_body(raw: bytes) -> Any:
    """The JSON value of a body, or of one server-sent event; None if it is none."""
    try:
        return read_any(raw.strip().removeprefix(b"data:"))
    except ValueError:
        return None
