"""Paths into a JSON body: tuples of keys and positions inside, `messages[0].content` outside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["Path", "format_path", "lookup", "parse_path"]

Path: TypeAlias = tuple[str | int, ...]

_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def format_path(path: Iterable[str | int]) -> str:
    """`("messages", 0, "content")` -> `messages[0].content`, the form that OpenAI's `error.param` has."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def parse_path(text: str) -> Path:
    """The reverse of `format_path`; positions may also be written `messages.0.content`."""
    return tuple(
        int(index or name) if index or name.isdecimal() else name
        for index, name in _PART.findall(text.removeprefix("$."))
    )


def lookup(body: Any, path: Path) -> Any:
    """The value at a path, or None where the path leads nowhere."""
    for part in path:
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            return None
    return body
