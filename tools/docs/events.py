"""The kinds of event in a stream's schema, each with its keys."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.schemas import Schema

from .markdown import code, lines, table
from .shape import resolve
from .words import describe_type

__all__ = ["event_table"]


def event_table(root: Schema) -> Iterator[str]:
    """The lines of a table; none if all events are of one kind."""
    rows = [[", ".join(map(code, words)), ", ".join(_keys(root, rule))] for words, rule in _branches(root)]
    if rows:
        yield from lines("Keys by event, in addition to `type` and `sequence_number`, in the `documented` profile:")
        yield from table(["Event", "Keys"], rows)


def _branches(root: Schema) -> Iterator[tuple[list[str], Schema]]:
    """The names of each kind, and the rule for its events."""
    for branch in root.get("allOf", ()):
        word = branch.get("if", {}).get("properties", {}).get("type", {})
        if word:
            yield [word["const"]] if "const" in word else word["enum"], resolve(root, branch["then"])


def _keys(root: Schema, rule: Schema) -> Iterator[str]:
    properties, required = rule.get("properties", {}), rule.get("required", ())
    for name in dict.fromkeys([*properties, *required]):
        description = describe_type(root, properties.get(name) or root["properties"][name])
        yield f"{code(name)} ({description}{'' if name in required else ', optional'})"
