"""Paths into a JSON value, as cases write them: `choices[0].message.content`, `output[type=function_call].call_id`,
`data[-1].id`, `choices[*].index` (all of them, as a list); `$` is the value itself."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["ABSENT", "at", "steps_of"]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final[Any] = _Absent()
"""What is found where there is nothing."""

_PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[(\*)\]|\[(\w+)=([^\]]*)\]")


def steps_of(path: str) -> list[re.Match[str]]:
    """Raises ValueError where it is no path."""
    text = path.removeprefix("$").removeprefix(".")
    parts, end = [], 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            raise ValueError(f"{path!r} is no path: wrong at {text[end:]!r}")
        parts.append(part)
        end = part.end()
    return parts


def at(value: Any, path: str) -> Any:
    """What the path leads to, or ABSENT. Raises ValueError where it is no path."""
    return _walk(value, steps_of(path))


def _walk(value: Any, parts: list[re.Match[str]]) -> Any:
    for number, part in enumerate(parts):
        key, index, every, name, wanted = part.groups()
        if every:
            rest = parts[number + 1 :]
            return [_walk(item, rest) for item in value] if isinstance(value, list) else ABSENT
        if key is not None:
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        elif index is not None:
            value = _item(value, int(index))
        else:
            items = value if isinstance(value, list) else []
            value = next((item for item in items if isinstance(item, dict) and str(item.get(name)) == wanted), ABSENT)
    return value


def _item(value: Any, index: int) -> Any:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        return ABSENT
    return value[index]
