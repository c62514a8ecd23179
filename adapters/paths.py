"""Paths into a JSON body: tuples of keys and positions in the code, `messages[0].content` in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["Path", "Places", "format_path", "lookup", "nest_places", "parse_path", "trim_path"]

Path: TypeAlias = tuple[str | int, ...]
Places: TypeAlias = list[tuple[Path, Path]]
"""Pairs of a path before a conversion and the path of the same value after it."""

_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def format_path(path: Iterable[str | int]) -> str:
    """Write `("messages", 0, "content")` as `messages[0].content`, the form of OpenAI's `error.param`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def parse_path(text: str) -> Path:
    """Parse what `format_path` writes; positions may also have the form `messages.0.content`."""
    return tuple(
        int(index or name) if index or name.isdecimal() else name
        for index, name in _PART.findall(text.removeprefix("$."))
    )


def lookup(body: Any, path: Path) -> Any:
    """Return the value at a path, None if there is none."""
    for part in path:
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            return None
    return body


def trim_path(body: Any, path: Path) -> Path:
    """Cut the path before the first key or position that the body does not have."""
    for length, part in enumerate(path):
        if part not in (body if isinstance(body, dict) else range(len(body)) if isinstance(body, list) else ()):
            return path[:length]
        body = body[part]
    return path


def nest_places(places: Places, before: Path, after: Path) -> Places:
    """Put `before` in front of the first path of each pair, and `after` in front of the second."""
    return [((*before, *one), (*after, *other)) for one, other in places]
