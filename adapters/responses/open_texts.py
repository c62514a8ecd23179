"""The texts and parts of a Responses stream that have begun and are not done yet.

Some servers report a text as done only with its part, or with its item, or never. Clients that wait for the events in
between get them: a text is done before its part, and a part before its item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from dragoman.adapters.call import JsonObject

from .accumulator import Accumulator
from .events import BY_DELTA, BY_DONE, TextKind, part_done, text_done

__all__ = ["OpenTexts"]

_Key: TypeAlias = tuple[int, str, int]
"""The position of the item, the list or the key that holds the text, and the position in that list."""

_PLACES = {kind.part_done: (kind.place, kind.index) for kind in BY_DELTA.values() if kind.place}
_ITEM_DONE = "response.output_item.done"


class OpenTexts:
    """The open texts of one stream, whose events `accumulator` gets."""

    __slots__ = ("_accumulator", "_parts", "_texts")

    def __init__(self, accumulator: Accumulator) -> None:
        self._accumulator = accumulator
        self._texts: dict[_Key, tuple[TextKind, JsonObject]] = {}
        self._parts: dict[_Key, tuple[TextKind, JsonObject]] = {}

    def add(self, event: JsonObject) -> None:
        """Note what an event in hub form begins or completes."""
        name = event["type"]
        if (kind := BY_DELTA.get(name)) is not None:
            self._texts[_make_key(kind, event)] = (kind, event)
            if kind.place:
                self._parts[_make_key(kind, event)] = (kind, event)
        elif (kind := BY_DONE.get(name)) is not None:
            self._texts.pop(_make_key(kind, event), None)
        elif name in _PLACES:
            self._parts.pop(_make_part_key(event), None)

    def make_omitted_events(self, event: JsonObject) -> list[JsonObject]:
        """Make the events that must come before this one, and note that their texts and parts are done."""
        name = event["type"]
        if not self._texts and not self._parts:
            return []
        if name in _PLACES:
            return [*self._finish_text(_make_part_key(event))]
        if name == _ITEM_DONE:
            mine = sorted(key for key in self._texts.keys() | self._parts.keys() if key[0] == event["output_index"])
            return [made for key in mine for made in (*self._finish_text(key), *self._finish_part(key))]
        return []

    def _finish_text(self, key: _Key) -> Iterator[JsonObject]:
        kind, event = self._texts.pop(key, (None, {}))
        if kind is not None:
            text = self._accumulator.buffer(event).text()
            yield text_done(kind, event["item_id"], key[0], key[2], text)

    def _finish_part(self, key: _Key) -> Iterator[JsonObject]:
        kind, event = self._parts.pop(key, (None, {}))
        part = None if kind is None else self._accumulator.build_part(kind, event)
        if kind is not None and part is not None:
            yield part_done(kind, event["item_id"], key[0], key[2], part)


def _make_key(kind: TextKind, event: JsonObject) -> _Key:
    return event["output_index"], kind.place or kind.key, event[kind.index] if kind.index else 0


def _make_part_key(event: JsonObject) -> _Key:
    place, index = _PLACES[event["type"]]
    return event["output_index"], place, event[index]
