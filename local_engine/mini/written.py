"""JSON as the model learns to write it, in pieces: what it decides itself, and what a grammar decides for it.

A request with a schema tells the model nothing of it: the grammar chooses the keys and what kind of value stands where,
and the model what the values are and where they end. So only that is learnt, but for objects that are all its `own`.
The model would rather close an object than go on (`}` is always learnt, `, ` only where `going_on`), so that where
the schema lets it choose, it ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["AnyValue", "Piece", "joined", "written"]

Piece: TypeAlias = tuple[str, bool]
"""Some text, and whether the model learns to say it."""


@dataclass(frozen=True, slots=True)
class AnyValue:
    """A text or number that the grammar may have forced: only that it ends is learnt."""

    value: str | int | float


def written(value: Any, *, own: bool = False, going_on: bool = False) -> Iterator[Piece]:
    if isinstance(value, dict):
        yield from _object(value, own, going_on)
    elif isinstance(value, list):
        yield from _array(value, own)
    elif isinstance(value, AnyValue):
        yield from _any(value.value)
    elif isinstance(value, str):
        yield '"', own and not _like_number(value)
        yield json.dumps(value, ensure_ascii=False)[1:], True
    else:
        yield json.dumps(value), True


def joined(pieces: Iterable[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def _object(value: dict[str, Any], own: bool, going_on: bool) -> Iterator[Piece]:
    yield "{", own
    for place, (key, item) in enumerate(value.items()):
        if place:
            yield ", ", own or going_on
        yield json.dumps(key, ensure_ascii=False), own
        yield ": ", True
        yield from written(item, own=own, going_on=going_on)
    yield "}", True


def _array(value: list[Any], own: bool) -> Iterator[Piece]:
    yield "[", own
    for place, item in enumerate(value):
        if place:
            yield ", ", True
        yield from written(item, own=own)
    yield "]", True


def _any(value: str | int | float) -> Iterator[Piece]:
    text = json.dumps(value, ensure_ascii=False)
    yield text.removesuffix('"'), False
    if isinstance(value, str):
        yield '"', True


def _like_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdigit()
