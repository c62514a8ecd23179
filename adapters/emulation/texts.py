"""The texts of requests and replies, whose tokens are counted or estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["ANSWER_TOKENS", "MESSAGE_TOKENS", "walk_texts"]

MESSAGE_TOKENS = 4
"""What a chat template puts around each message: its beginning, its role, its end."""
ANSWER_TOKENS = 3
"""What begins the answer."""


def walk_texts(value: Any, list_parts: Callable[[JsonObject], Iterable[Any]]) -> Iterator[str]:
    """The texts in a JSON value. Of each object, they are looked for in the parts that `list_parts` returns."""
    if isinstance(value, str):
        yield value
        return
    parts = list_parts(value) if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from walk_texts(part, list_parts)
