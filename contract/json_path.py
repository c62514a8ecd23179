"""Paths into a JSON value, as cases write them: `choices[0].message.content`, `output[type=function_call].call_id`,
`data[-1].id`, `choices[*].index` (all of them, as a list); `$` is the value itself."""

from __future__ import annotations

import re
from typing import Final

from .json_types import JsonValue

__all__ = ["ABSENT", "find_value", "parse_path"]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final[JsonValue] = _Absent()
"""The value at a path that leads nowhere."""

_PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[(\*)\]|\[(\w+)=([^\]]*)\]")


def parse_path(path: str) -> list[re.Match[str]]:
    """Split a path into its parts. Raises ValueError if it is not a path."""
    text = path.removeprefix("$").removeprefix(".")
    parts, end = [], 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            raise ValueError(f"{path!r} is not a path: wrong at {text[end:]!r}")
        parts.append(part)
        end = part.end()
    return parts


def find_value(value: JsonValue, path: str) -> JsonValue:
    """Return the value at the path, or ABSENT. Raises ValueError if it is not a path."""
    return _follow(value, parse_path(path))


def _follow(value: JsonValue, parts: list[re.Match[str]]) -> JsonValue:
    for number, part in enumerate(parts):
        key, index, every, name, wanted = part.groups()
        if every:
            rest = parts[number + 1 :]
            return [_follow(item, rest) for item in value] if isinstance(value, list) else ABSENT
        if key is not None:
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        elif index is not None:
            value = _item_at(value, int(index))
        else:
            items = value if isinstance(value, list) else []
            value = next((item for item in items if isinstance(item, dict) and str(item.get(name)) == wanted), ABSENT)
    return value


def _item_at(value: JsonValue, index: int) -> JsonValue:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        return ABSENT
    return value[index]
