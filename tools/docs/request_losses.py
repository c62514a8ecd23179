"""Traces every field of a request from every client's dialect to one provider's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dragoman.adapters.dialect import Dialect

from .markdown import code, table
from .questions import SPECIAL, Question, make_questions
from .shape import Place, Step, drop_kinds, format_place, merge_places, names, sort_places
from .trials import CARRIED, Client, NotInDialect, trace_fate
from .words import literal

__all__ = ["ABSENT", "request_table"]

ABSENT = "–"

_Fates = dict[str, str]
"""A value's name -> its fate; empty if the client's dialect lacks the field."""


def request_table(clients: Sequence[Client], provider: Dialect, protocol: str = "chat") -> list[str]:
    """The lines of the provider's table."""
    asked = [make_questions(client.dialect.name, client.profile, protocol) for client in clients]
    rows = {
        place: [
            _fates(one.get(place, one.get(drop_kinds(place), [])), client, provider)
            for one, client in zip(asked, clients, strict=True)
        ]
        for place in _places(asked)
    }
    titles = ["Field", *(client.dialect.name for client in clients)]
    return table(titles, [*_rows(rows), *_special_rows(clients, provider, protocol)])


def _places(asked: Iterable[Mapping[Place, object]]) -> list[Place]:
    """Return all places, without those that another client's dialect splits by kind of object."""
    found = dict.fromkeys(place for one in asked for place in one)
    apart = {drop_kinds(place) for place in found if place != drop_kinds(place)}
    return sort_places(place for place in found if place not in apart)


def _fates(asked: Sequence[Question], client: Client, provider: Dialect) -> _Fates:
    return {one.value: CARRIED if one.is_covered else trace_fate(client, provider, one) for one in asked}


def _rows(rows: Mapping[Place, list[_Fates]]) -> Iterator[list[str]]:
    groups: dict[tuple[str, ...], list[Place]] = {}
    for place, fates in rows.items():
        if any(_adds_information(place, client, fates[client], rows) for client in range(len(fates))):
            groups.setdefault((*names(place), *map(_cell, fates)), []).append(place)
    for cells, places in groups.items():
        for place in merge_places(places):
            yield [code(format_place(place)), *cells[len(place) :]]


def _cell(fates: _Fates) -> str:
    by_word: dict[str, list[str]] = {}
    for value, word in fates.items():
        by_word.setdefault(word, []).append(value)
    if len(by_word) < 2:
        return next(iter(by_word), ABSENT)
    return "; ".join(f"{', '.join(some)}: {word}" for word, some in by_word.items() if word != CARRIED)


def _adds_information(place: Place, client: int, fates: _Fates, rows: Mapping[Place, list[_Fates]]) -> bool:
    """Whether the fates add anything to those of the objects around the field."""
    words = set(fates.values()) - {CARRIED}
    return bool(words) and not any(words <= outer for outer in _outer_words(place, client, rows))


def _outer_words(place: Place, client: int, rows: Mapping[Place, list[_Fates]]) -> Iterator[set[str]]:
    """Yield the fates of each field around the place, and of the kinds of object on the way."""
    none: list[_Fates] = [{}] * (client + 1)
    for end in range(len(place) - 1, 0, -1):
        before, step = place[: end - 1], place[end - 1]
        yield set(rows.get((*before, Step(step.name)), none)[client].values())
        if step.when:
            kinds = rows.get((*before, Step(step.name, step.many), Step(step.when.key)), none)[client]
            yield {word for value, word in kinds.items() if value == literal(step.when.values[0])}


def _special_rows(clients: Sequence[Client], provider: Dialect, protocol: str) -> Iterator[list[str]]:
    for label, question in SPECIAL[protocol].items():
        cells = [_special(client, provider, question) for client in clients]
        if not set(cells) <= {CARRIED, ABSENT}:
            yield [label, *cells]


def _special(client: Client, provider: Dialect, question: Question) -> str:
    try:
        return trace_fate(client, provider, question)
    except NotInDialect:
        return ABSENT
