"""The fates of every field of a request, from every client's dialect to one provider's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dragoman.adapters.dialect import Dialect

from .markdown import code, table
from .questions import SPECIAL, Question, questions
from .shape import Place, Step, bare, in_order, merged, names, written
from .trials import CARRIED, Client, NotInDialect, fate
from .words import literal

__all__ = ["ABSENT", "request_table"]

ABSENT = "–"

_Fates = dict[str, str]
"""A value's name -> its fate; empty where the client's dialect does not have the field."""


def request_table(clients: Sequence[Client], provider: Dialect, protocol: str = "chat") -> list[str]:
    """The lines of the provider's table."""
    asked = [questions(client.dialect.name, client.profile, protocol) for client in clients]
    rows = {
        place: [
            _fates(one.get(place, one.get(bare(place), [])), client, provider)
            for one, client in zip(asked, clients, strict=True)
        ]
        for place in _places(asked)
    }
    titles = ["Field", *(client.dialect.name for client in clients)]
    return table(titles, [*_rows(rows), *_special_rows(clients, provider, protocol)])


def _places(asked: Iterable[Mapping[Place, object]]) -> list[Place]:
    """All places, without those that another client's dialect tells apart further."""
    found = dict.fromkeys(place for one in asked for place in one)
    apart = {bare(place) for place in found if place != bare(place)}
    return in_order(place for place in found if place not in apart)


def _fates(asked: Sequence[Question], client: Client, provider: Dialect) -> _Fates:
    return {one.value: CARRIED if one.told else fate(client, provider, one) for one in asked}


def _rows(rows: Mapping[Place, list[_Fates]]) -> Iterator[list[str]]:
    groups: dict[tuple[str, ...], list[Place]] = {}
    for place, fates in rows.items():
        if any(_news(place, client, fates[client], rows) for client in range(len(fates))):
            groups.setdefault((*names(place), *map(_cell, fates)), []).append(place)
    for said, places in groups.items():
        for place in merged(places):
            yield [code(written(place)), *said[len(place) :]]


def _cell(fates: _Fates) -> str:
    by_word: dict[str, list[str]] = {}
    for value, word in fates.items():
        by_word.setdefault(word, []).append(value)
    if len(by_word) < 2:
        return next(iter(by_word), ABSENT)
    return "; ".join(f"{', '.join(some)}: {word}" for word, some in by_word.items() if word != CARRIED)


def _news(place: Place, client: int, fates: _Fates, rows: Mapping[Place, list[_Fates]]) -> bool:
    """Whether the fates say more than those of what the field stands in."""
    words = set(fates.values()) - {CARRIED}
    return bool(words) and not any(words <= told for told in _told(place, client, rows))


def _told(place: Place, client: int, rows: Mapping[Place, list[_Fates]]) -> Iterator[set[str]]:
    """What is said of each field that the place stands in, and of the kinds of object on the way."""
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
        return fate(client, provider, question)
    except NotInDialect:
        return ABSENT
