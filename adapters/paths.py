"""Paths into a JSON body: tuples of keys and positions in the code, `messages[0].content` in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["Path", "format_path", "lookup", "parse_path"]

Path: TypeAlias = tuple[str | int, ...]

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
