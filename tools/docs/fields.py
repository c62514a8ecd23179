"""One schema of a dialect as a table of fields, with a column for each profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.schemas import DOCUMENTED, load, profiles

from .markdown import code, lines, table
from .shape import Field, Place, Shape, drop_kinds, format_place, join_places, merge_places, read_shape, sort_places
from .words import describe_limits, describe_type

__all__ = ["Sources", "schema_tables"]


@dataclass(slots=True)
class Sources:
    """The sources of one page, numbered in the order of their first use."""

    texts: list[str] = field(default_factory=list)

    def number(self, source: str | list[str]) -> int:
        text = source if isinstance(source, str) else "; ".join(source)
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


@dataclass(frozen=True, slots=True)
class _Cell:
    """The description of a field in one profile."""

    kind: str
    required: str
    limits: str
    source: int

    def describe_difference(self, documented: _Cell | None) -> str:
        """Describe what differs from the documented profile."""
        if documented is None:
            return "; ".join(filter(None, [self.kind, self.required, self.limits]))
        parts = []
        if self.kind != documented.kind:
            parts.append(self.kind)
        if self.required != documented.required:
            parts.append(self.required or "optional")
        if self.limits != documented.limits:
            parts.append(self.limits or "not limited")
        return "; ".join(parts)


def schema_tables(name: str, sources: Sources) -> Iterator[str]:
    """The lines of one schema's tables."""
    shapes = {profile: read_shape(load(name, profile)) for profile in profiles(name)}
    others = [profile for profile in shapes if profile != DOCUMENTED]
    titles = ["Field", "Type", "Required", "Rules", *map(code, others), "Source"]
    yield from table(titles, [_row(place, cells, others) for place, cells in _align(shapes, sources)])
    yield from _remarks(shapes)
    yield from _closed(shapes)


def _align(shapes: Mapping[str, Shape], sources: Sources) -> list[tuple[Place, dict[str, _Cell]]]:
    """Return every place with its description in each profile; places with equal descriptions are merged."""
    groups: dict[str, tuple[dict[str, _Cell], list[Place]]] = {}
    for place in _places(shapes):
        cells = {profile: _cell(one, found, sources) for profile, one in shapes.items() if (found := _find(one, place))}
        description = json.dumps(
            [format_place(drop_kinds(place)), {profile: repr(cell) for profile, cell in cells.items()}]
        )
        groups.setdefault(description, (cells, []))[1].append(place)
    return [(place, cells) for cells, places in groups.values() for place in merge_places(places)]


def _places(shapes: Mapping[str, Shape]) -> list[Place]:
    """Return all places, without those that another profile splits by kind of object."""
    found: dict[Place, list[Place]] = {}
    for one in shapes.values():
        for place in one.fields:
            found.setdefault(place, []).append(place)
    apart = {drop_kinds(place) for place in found if place != drop_kinds(place)}
    kept = [join_places(group) for place, group in found.items() if place not in apart or len(group) == len(shapes)]
    return sort_places(kept)


def _find(one: Shape, place: Place) -> Field | None:
    return one.fields.get(place) or one.fields.get(drop_kinds(place))


def _cell(one: Shape, found: Field, sources: Sources) -> _Cell:
    rule = found.rule
    return _Cell(
        describe_type(one.root, rule),
        "required" if found.required else "",
        describe_limits(one.root, rule),
        sources.number(rule["x-source"]),
    )


def _row(place: Place, cells: dict[str, _Cell], others: list[str]) -> list[str]:
    documented = cells.get(DOCUMENTED)
    first = [documented.kind, documented.required, documented.limits] if documented else ["not documented", "", ""]
    differences: list[str] = []
    for profile in others:
        cell = cells.get(profile)
        difference = "not listed" if cell is None else cell.describe_difference(documented)
        differences.append(
            f"as in {code(others[differences.index(difference)])}"
            if len(difference) > 40 and difference in differences
            else difference
        )
    numbers = sorted({cell.source for cell in cells.values()})
    return [code(format_place(place)), *first, *differences, ", ".join(map(str, numbers))]


def _remarks(shapes: Mapping[str, Shape]) -> Iterator[str]:
    found: dict[tuple[str, Place, str], list[str]] = {}
    for profile, one in shapes.items():
        for text in dict.fromkeys(remark.text for remark in one.remarks):
            for place in merge_places(remark.place for remark in one.remarks if remark.text == text):
                where = found.setdefault((text, drop_kinds(place), format_place(place)), [])
                if profile not in where:
                    where.append(profile)
    if found:
        yield from lines("Rules across fields:")
        for (text, _, name), where in found.items():
            only = "" if len(where) == len(shapes) else f" ({', '.join(map(code, where))} only)"
            yield f"- `{name}`: {text}{only}"
        yield ""


def _closed(shapes: Mapping[str, Shape]) -> Iterator[str]:
    for profile, one in shapes.items():
        closed = [format_place(place) for place in merge_places(one.closed)]
        if closed:
            text = ", ".join(code(name) if name else "the body itself" for name in closed)
            yield f"In `{profile}` these accept no other keys: {text}."
            yield ""
