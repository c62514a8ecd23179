"""What an item of a stream is, before its protocol looks at it: noise, the end, an error, or something to read.

Servers and gateways keep silent streams alive with events that say nothing: no data, `{}`, `null`, a ping. Errors come
in many shapes, with or without the event name `error`; `find_error` decides which objects are errors.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from dragoman.adapters.json_repair import parse_leniently

from .reply_validation import find_error

__all__ = ["DONE", "NOT_JSON", "ItemClass", "classify_item", "parse_item"]

ItemClass: TypeAlias = Literal["idle", "done", "error", "text", "broken"]

NOT_JSON: Final = object()
"""The value of data that is not JSON."""

DONE: Final = b"[DONE]"
"""The data of the event that ends a stream."""

_DONE = frozenset({DONE, b'"[DONE]"', b"[done]"})
_HEARTBEATS = frozenset({"ping", "pong", "keepalive", "keep-alive", "keep_alive", "heartbeat"})
_ERROR_NAME = b"error"


def parse_item(data: bytes) -> tuple[Any, list[str]]:
    """The value of an item's data that orjson refused, with the reasons of its repairs; NOT_JSON if it is not JSON."""
    try:
        return parse_leniently(data)
    except ValueError:
        return NOT_JSON, []


def classify_item(data: bytes, body: Any, name: bytes | None) -> tuple[ItemClass | None, Any]:
    """The class of an item, and the argument of its handler; None if its protocol has to decide.

    `body` is the value of the data. `name` is the event's name, None for a bare line.
    """
    if body is NOT_JSON or body == "[DONE]":
        return _classify_text(data.strip(), name)
    error = find_error(body)
    if error is not None or name == _ERROR_NAME:
        return "error", error or (body if isinstance(body, dict) else {"error": str(body)})
    if not body or _is_heartbeat(body, name):
        return "idle", None
    return None, body


def _classify_text(data: bytes, name: bytes | None) -> tuple[ItemClass, Any]:
    """The class of data that is no JSON, except the word that ends a stream."""
    if data in _DONE:
        return "done", None
    if name == _ERROR_NAME:
        return "error", {"error": data.decode("utf-8", "replace")}
    if not data or (name or b"").decode("utf-8", "replace") in _HEARTBEATS:
        return "idle", None
    return ("text" if name is None else "broken"), data


def _is_heartbeat(body: Any, name: bytes | None) -> bool:
    if isinstance(body, dict):
        word: Any = body.get("type")
        if isinstance(word, str) and word in _HEARTBEATS:
            return True
        if "choices" in body or word is not None:
            return False
    return bool(name) and (name or b"").decode("utf-8", "replace") in _HEARTBEATS
