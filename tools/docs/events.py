"""The kinds of event that a stream's schema tells apart, each with its keys."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.schemas import Schema

from .markdown import code, lines, table
from .shape import resolve
from .words import kind

__all__ = ["event_kinds"]


def event_kinds(root: Schema) -> Iterator[str]:
    """The lines of a table; none where all events are of one kind."""
    rows = [[", ".join(map(code, words)), ", ".join(_keys(root, rule))] for words, rule in _branches(root)]
    if rows:
        yield from lines("Keys by event, beside `type` and `sequence_number`, in the `documented` profile:")
        yield from table(["Event", "Keys"], rows)


def _branches(root: Schema) -> Iterator[tuple[list[str], Schema]]:
    """The words for the kind, and the rule for events of that kind."""
    for branch in root.get("allOf", ()):
        word = branch.get("if", {}).get("properties", {}).get("type", {})
        if word:
            yield [word["const"]] if "const" in word else word["enum"], resolve(root, branch["then"])


def _keys(root: Schema, rule: Schema) -> Iterator[str]:
    properties, required = rule.get("properties", {}), rule.get("required", ())
    for name in dict.fromkeys([*properties, *required]):
        said = kind(root, properties.get(name) or root["properties"][name])
        yield f"{code(name)} ({said}{'' if name in required else ', optional'})"
