"""Reads the arguments of a call, a text in other protocols and in pieces of streams, as the object that Messages has.

The text is bounded like a body: a deeper object could not be written again.
"""

from __future__ import annotations

import json

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.json_structure import get_outline, has_long_number
from dragoman.adapters.jsontext import read_any
from dragoman.adapters.paths import Path

__all__ = ["parse_input", "read_input"]

_INEXACT = "a number of more than 64 bits is not exact in an object"


def parse_input(text: str) -> JsonObject | None:
    """Parse the arguments of a call; empty ones are an empty object. Returns None if they are no JSON object, or one
    of more than MAX_DEPTH levels."""
    try:
        found = read_any(text.encode()) if text.strip() else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def read_input(text: str, path: Path, changes: ChangeRecorder) -> JsonObject | None:
    """As `parse_input`. Records at `path` that a number is not exact."""
    found = parse_input(text)
    if found is not None and has_long_number(get_outline(text.encode())) and not _is_exact(text, found):
        changes.record_conversion(path, _INEXACT, "loss")
    return found


def _is_exact(text: str, found: JsonObject) -> bool:
    try:
        return bool(json.loads(text) == found)
    except ValueError:  # an integer that the standard library refuses because of its length
        return False
