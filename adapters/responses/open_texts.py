"""The texts and parts of a Responses stream that have begun and are not done yet, and those that are done.

Some servers report a text as done only with its part, or with its item, or never. Clients that wait for the events in
between get them: a text is done before its part, and a part before its item.

Each item, part and text begins once and is done once: what begins or completes it again is a repetition, and so is
what comes after it is done. Repetitions are left out. One that says something else than what came before is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.adapters.changes import Weight

from .accumulator import Accumulator
from .events import BY_DELTA, BY_DONE, TextKind, part_done, read_position, text_done
from .item_positions import ADDED, DONE
from .item_texts import may_still_speak

__all__ = ["OpenTexts", "read_whole"]

_Key: TypeAlias = tuple[int, str, int]
"""The position of the item, the list or the key that holds the text, and the position in that list."""

_PLACES = {kind.part_done: (kind.place, kind.index) for kind in BY_DELTA.values() if kind.place}
_BEGUN = {kind.part_added for kind in BY_DELTA.values() if kind.place}
_HOLDERS = {kind.holder: kind for kind in BY_DELTA.values() if kind.place}


class OpenTexts:
    """The open texts of one stream, whose events `accumulator` gets."""

    __slots__ = ("_accumulator", "_done", "_ended", "_parts", "_texts")

    def __init__(self, accumulator: Accumulator) -> None:
        self._accumulator = accumulator
        self._texts: dict[_Key, tuple[TextKind, JsonObject]] = {}
        self._parts: dict[_Key, tuple[TextKind, JsonObject]] = {}
        self._done: set[tuple[str, _Key]] = set()  # the type of the event that completed a text or a part, and its key
        self._ended: set[int] = set()  # the positions of items

    def add(self, event: JsonObject) -> None:
        """Note what an event in hub form begins or completes."""
        name = event["type"]
        if (kind := BY_DELTA.get(name)) is not None:
            self._texts[_make_key(kind, event)] = (kind, event)
            if kind.place:
                self._parts[_make_key(kind, event)] = (kind, event)
        elif (kind := BY_DONE.get(name)) is not None:
            key = _make_key(kind, event)
            self._texts.pop(key, None)
            self._done.add((name, key))
            if kind.place:
                self._parts.setdefault(key, (kind, event))
        elif name in _PLACES:
            key = _make_part_key(event, *_PLACES[name])
            self._parts.pop(key, None)
            kind, text = read_whole(event)
            self._done |= {(name, key), (kind.done if kind is not None and text else name, key)}
        elif name == DONE and not may_still_speak(event["item"]):
            self._ended.add(event["output_index"])

    def find_repetition(self, event: JsonObject) -> Weight | None:
        """How much is lost if the event, which need not be in hub form, is left out; None if it is no repetition."""
        name, position = event["type"], event.get("output_index")
        if type(position) is not int:
            return None
        if (kind := BY_DELTA.get(name)) is not None:
            return "loss" if (kind.done, _make_key(kind, event)) in self._done else None
        kind, text = read_whole(event)
        if kind is not None:
            key, is_known = _make_key(kind, event), name in _BEGUN and self._accumulator.has_part(kind, event)
            if not is_known and not self._is_done(event, key):
                return None
            return "form" if not text or text == self._accumulator.find_text(kind, event) else "loss"
        is_repeated = self._accumulator.has_item(event) if name == ADDED else name == DONE and position in self._ended
        return "form" if is_repeated else None

    def contradicts(self, event: JsonObject) -> bool:
        """Whether an event completes a text or a part with another text than the one that came in pieces."""
        kind, text = read_whole(event)
        return kind is not None and bool(text) and self._accumulator.find_text(kind, event) not in (None, "", text)

    def _is_done(self, event: JsonObject, key: _Key) -> bool:
        return key[0] in self._ended or (event["type"], key) in self._done

    def finish_before(self, event: JsonObject) -> list[JsonObject]:
        """Make the events that must come before this one, and note that their texts and parts are done."""
        name = event["type"]
        if name in _PLACES:
            kind, text = read_whole(event)
            key = _make_part_key(event, *_PLACES[name])
            if kind is not None and text and key not in self._texts and (kind.done, key) not in self._done:
                return [text_done(kind, event["item_id"], key[0], key[2], text)]
            return [*self._finish_text(key)]
        return self.finish_item(event["output_index"]) if name == DONE else []

    def finish_item(self, position: int) -> list[JsonObject]:
        """Make the events that complete the open texts and parts of an item, and note that they are done."""
        mine = sorted(key for key in self._texts.keys() | self._parts.keys() if key[0] == position)
        return [made for key in mine for made in (*self._finish_text(key), *self._finish_part(key))]

    def _finish_text(self, key: _Key) -> Iterator[JsonObject]:
        kind, event = self._texts.pop(key, (None, {}))
        if kind is not None:
            self._done.add((kind.done, key))
            text = self._accumulator.buffer(event).text()
            yield text_done(kind, event["item_id"], key[0], key[2], text)

    def _finish_part(self, key: _Key) -> Iterator[JsonObject]:
        kind, event = self._parts.pop(key, (None, {}))
        part = None if kind is None else self._accumulator.build_part(kind, event)
        if kind is not None and part is not None:
            self._done.add((kind.part_done, key))
            yield part_done(kind, event["item_id"], key[0], key[2], part)


def read_whole(event: JsonObject) -> tuple[TextKind | None, Any]:
    """The kind of the text that an event completes, or whose part it begins or completes, and that text."""
    kind, part = BY_DONE.get(event["type"]), event.get("part")
    if kind is not None:
        return kind, event.get(kind.key)
    kind = _HOLDERS.get(str(part.get("type"))) if isinstance(part, dict) else None
    if kind is None or not isinstance(part, dict) or event["type"] not in (kind.part_added, kind.part_done):
        return None, None
    return kind, part.get(kind.key)


def _make_key(kind: TextKind, event: JsonObject) -> _Key:
    return event["output_index"], kind.place or kind.key, read_position(event, kind.index)


def _make_part_key(event: JsonObject, place: str, index: str) -> _Key:
    return event["output_index"], place, read_position(event, index)
