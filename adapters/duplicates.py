"""Find the key that occurs twice in one object of an otherwise valid JSON text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from .faults import Fault
from .paths import Path, format_path

__all__ = ["describe_place", "duplicate_key_fault"]

_SHOWN = 40
# A string, with the colon after it if it is a key; or a bracket, a brace or a comma.
_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*(:)?|[{}\[\],]')


@dataclass(slots=True)
class _Open:
    """An object or array that has not ended yet: the current key or index, and the position of each key so far."""

    at: str | int
    keys: dict[str, int] = field(default_factory=dict)


def duplicate_key_fault(text: str, skipped: int = 0) -> Fault:
    """Return the fault that names the first key that occurs twice in one object, and both its places.

    `skipped` is the number of bytes before the text. Raises ValueError if there is no such key.
    """
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text):
        mark = token[0][0]
        if mark in "{[":
            stack.append(_Open("" if mark == "{" else 0))
        elif mark in "}]":
            stack.pop()
        elif mark == "," and isinstance(stack[-1].at, int):
            stack[-1].at += 1
        elif token[2]:
            key: str = json.loads(token[1])
            stack[-1].at = key
            first = stack[-1].keys.setdefault(key, token.start())
            if first != token.start():
                places = [describe_place(text, position, skipped) for position in (first, token.start())]
                return _fault(tuple(one.at for one in stack), *places)
    raise ValueError("no key occurs twice")


def describe_place(text: str, position: int, skipped: int = 0) -> str:
    """Describe where a character is: line and column, both counted from 1, and byte, counted from 0."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column} (byte {skipped + len(text[:position].encode())})"


def _fault(path: Path, first: str, second: str) -> Fault:
    name = format_path(path)
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    text = f"The body has the key {shown} more than once: at {first} and at {second}; leave one out"
    return Fault("invalid_request", text, path, code="duplicate_key")
