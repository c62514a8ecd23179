"""The texts of items of a Responses stream: what an item says, and whether it says the same as before."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["add_missing_texts", "lacks_text", "may_still_speak", "says_otherwise"]

_KEYS = ("content", "summary", "arguments", "input")
"""The keys of an item that hold its texts."""


def may_still_speak(item: Any) -> bool:
    """Whether an item that is done holds no text, though its type has some: then its texts may still come."""
    if not isinstance(item, dict):
        return True
    return item.get("type") in ("message", "reasoning") and not any(item.get(key) for key in _KEYS)


def lacks_text(item: JsonObject, known: JsonObject) -> bool:
    """Whether an item has no text where `known`, the same item of earlier events, has one."""
    return any(known.get(key) and not item.get(key) for key in _KEYS)


def add_missing_texts(item: JsonObject, known: JsonObject) -> bool:
    """Add the texts that an item lacks in place, from the same item of earlier events. True if any was added."""
    missing = {key: known[key] for key in _KEYS if known.get(key) and not item.get(key)}
    item.update(missing)
    return bool(missing)


def says_otherwise(item: JsonObject, known: JsonObject) -> bool:
    """Whether both have a text under a key, and not the same."""
    return any(_join(item[key]) != _join(known[key]) for key in _KEYS if item.get(key) and known.get(key))


def _join(texts: Any) -> str:
    if not isinstance(texts, list):
        return str(texts)
    found = [part.get("text") or part.get("refusal") for part in texts if isinstance(part, dict)]
    return "".join(text for text in found if isinstance(text, str))
