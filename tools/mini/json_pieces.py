"""JSON in pieces, as the model learns it: what it decides itself, and what a grammar decides for it.

The model never sees the schema of a request. The grammar chooses the keys and the kinds of values; the model chooses
the values and where they end. So it learns only these, except if an object is its `own`: then it learns all of it.
It always learns `}`, and `, ` only if the object `continues`: if the schema lets it choose, it closes the object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["AnyValue", "Piece", "join_pieces", "write_pieces"]

Piece: TypeAlias = tuple[str, bool]
"""Some text, and whether the model learns it."""


@dataclass(frozen=True, slots=True)
class AnyValue:
    """A text or number that the grammar may have forced: the model learns only that it ends."""

    value: str | int | float


def write_pieces(value: Any, *, own: bool = False, continues: bool = False) -> Iterator[Piece]:
    if isinstance(value, dict):
        yield from _object(value, own, continues)
    elif isinstance(value, list):
        yield from _array(value, own)
    elif isinstance(value, AnyValue):
        yield from _any_pieces(value.value)
    elif isinstance(value, str):
        yield '"', own and not _looks_like_number(value)
        yield json.dumps(value, ensure_ascii=False)[1:], True
    else:
        yield json.dumps(value), True


def join_pieces(pieces: Iterable[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def _object(value: dict[str, Any], own: bool, continues: bool) -> Iterator[Piece]:
    yield "{", own
    for place, (key, item) in enumerate(value.items()):
        if place:
            yield ", ", own or continues
        yield json.dumps(key, ensure_ascii=False), own
        yield ": ", True
        yield from write_pieces(item, own=own, continues=continues)
    yield "}", True


def _array(value: list[Any], own: bool) -> Iterator[Piece]:
    yield "[", own
    for place, item in enumerate(value):
        if place:
            yield ", ", True
        yield from write_pieces(item, own=own)
    yield "]", True


def _any_pieces(value: str | int | float) -> Iterator[Piece]:
    text = json.dumps(value, ensure_ascii=False)
    yield text.removesuffix('"'), False
    if isinstance(value, str):
        yield '"', True


def _looks_like_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdigit()
