"""Rendering of log events as lines: JSON for programs, text for people. Every event can be rendered.

No line has a control character in it: neither those that move a terminal's cursor, nor those that change the direction
of text, nor a line feed. They are escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson

from .short_line import format_short

__all__ = ["RENDERERS", "Renderer", "escape_unprintable"]

Renderer: TypeAlias = Callable[[dict[str, Any]], bytes]
"""Makes a line, without its line feed, of an event's fields; it may alter them."""

_MAX_LEVELS = 32
_CONTROLS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""The control characters that JSON text may have: DEL, C1, and those of line breaks and bidirectional text."""


def render_json(line: dict[str, Any]) -> bytes:
    """The event as one JSON object."""
    try:
        data = orjson.dumps(line, default=_describe)
    except (TypeError, ValueError, RecursionError):
        data = orjson.dumps(_to_plain(line))
    return data if data.isascii() and b"\x7f" not in data else _CONTROLS.sub(_escape, data.decode()).encode()


def render_console(line: dict[str, Any]) -> bytes:
    """The time and what happened; of exchanges what people look for, of other events `name=value` for each field."""
    return escape_unprintable(format_short(line, _quote_value)).encode()


def escape_unprintable(text: str) -> str:
    """The text with every unprintable character as its escape, so that it can send no commands to a terminal."""
    return text if text.isprintable() else "".join(map(_escape_unprintable, text))


def _quote_value(value: Any) -> str:
    """The value as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_describe)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_to_plain(value), ensure_ascii=False)


def _escape_unprintable(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _to_plain(value: Any, levels: int = _MAX_LEVELS) -> Any:
    """The value with what JSON lacks as text: half of a surrogate pair as its escape, a large number in hexadecimal, an
    object as its text. Deep values are cut."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return hex(value)
    if value is None or isinstance(value, (int, float)):
        return value
    if levels and isinstance(value, Mapping):
        return {_to_plain(_describe(key)): _to_plain(each, levels - 1) for key, each in value.items()}
    if levels and isinstance(value, (list, tuple)):
        return [_to_plain(each, levels - 1) for each in value]
    if isinstance(value, (Mapping, list, tuple)):
        return "..."
    return _to_plain(_describe(value))


def _describe(value: Any) -> str:
    """An object as text: its own text, or the name of its class if it fails to make one."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - any may come from the object's class
        return f"<{type(value).__name__}>"


RENDERERS: Mapping[str, Renderer] = {"json": render_json, "console": render_console}
