"""Accumulates the events of a Responses stream into its response object.

Items are in the order of their `output_index`. Texts are joined only when the object is built. A `done` event replaces
the deltas before it. An item without a `done` event has the status `incomplete`. Unknown events, and events that do not
match earlier ones, are ignored: adding an event never fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.adapters.text_buffer import TextBuffer

from .events import (
    ANNOTATION_ADDED,
    BEGINNINGS,
    BY_DELTA,
    BY_DONE,
    OUTPUT_TEXT,
    TERMINALS,
    TextKind,
    new_part,
    read_position,
)

__all__ = ["Accumulator"]

_NEVER_INCOMPLETE = frozenset({"web_search_call", "image_generation_call"})  # they have the status `failed` instead


class Accumulator:
    """The response of one stream so far."""

    def __init__(self) -> None:
        self._base: JsonObject = {}
        self._items: dict[int, _Item] = {}
        self._final: list[JsonObject] = []

    @property
    def has_begun(self) -> bool:
        """True once an event has shown the response object."""
        return bool(self._base)

    def has_item(self, event: JsonObject) -> bool:
        """Whether the item of the event has been added."""
        return self._find_item(event) is not None

    def has_part(self, kind: TextKind, event: JsonObject) -> bool:
        """Whether the part of the event has been added; `kind` is the kind of the event's text."""
        item = self._find_item(event)
        return item is not None and read_position(event, kind.index) in item.parts.get(kind.place, ())

    def is_done(self, position: int) -> bool:
        """Whether the item at the position has a `done` event."""
        return position in self._items and self._items[position].done

    def add(self, event: JsonObject) -> None:
        """Add one event in hub form."""
        name = event["type"]
        kind = BY_DELTA.get(name)
        if kind is None:
            handler = _HANDLERS.get(name)
            if handler is not None:
                handler(self, event)
            return
        item = self._find_item(event)
        if item is not None and type(event.get("delta")) is str:
            item.buffer(kind, event).add(event["delta"])
            if kind is OUTPUT_TEXT and event.get("logprobs"):
                item.find_part(kind, event).logprobs += _as_list(event["logprobs"])

    def buffer(self, delta: JsonObject) -> TextBuffer:
        """The buffer for the texts of deltas like this one. It is valid until another event is added."""
        kind, item = BY_DELTA.get(delta["type"]), self._find_item(delta)
        return TextBuffer() if kind is None or item is None else item.buffer(kind, delta)

    def build_part(self, kind: TextKind, event: JsonObject) -> JsonObject | None:
        """The part of the event so far; `kind` is the kind of its text. None if its item is unknown."""
        item = self._find_item(event)
        return None if item is None else item.find_part(kind, event).build()

    def find_text(self, kind: TextKind, event: JsonObject) -> str | None:
        """The text of this kind at the place of the event so far; None if there is none."""
        item = self._find_item(event)
        body = {} if item is None else item.build("incomplete")
        if kind.place:
            parts, index = _as_list(body.get(kind.place)), read_position(event, kind.index)
            body = parts[index] if 0 <= index < len(parts) and isinstance(parts[index], dict) else {}
        text = body.get(kind.key)
        return text if isinstance(text, str) else None

    def items(self, unfinished: str = "incomplete") -> dict[int, JsonObject]:
        """The items of the events so far by position, in order; `unfinished` is as for `output`."""
        return {position: item.build(unfinished) for position, item in sorted(self._items.items())}

    def output(self, unfinished: str = "incomplete") -> list[JsonObject]:
        """The items so far, in order; `unfinished` is the status of items without a `done` event."""
        return self._final or [*self.items(unfinished).values()]

    def response(
        self, status: str | None = None, error: JsonObject | None = None, incomplete_details: JsonObject | None = None
    ) -> JsonObject:
        """The response object so far; arguments replace the values from the events."""
        given = {"status": status, "error": error, "incomplete_details": incomplete_details}
        said = {key: value for key, value in given.items() if value is not None}
        return {**self._base, "output": self.output(), **said}

    # Handlers

    def _begin(self, event: JsonObject) -> None:
        response = event.get("response")
        if isinstance(response, dict):
            self._base = response

    def _end(self, event: JsonObject) -> None:
        self._begin(event)
        output = self._base.get("output")
        self._final = output if isinstance(output, list) else []

    def _add_item(self, event: JsonObject) -> None:
        self._set_item(event, done=False)

    def _finish_item(self, event: JsonObject) -> None:
        self._set_item(event, done=True)

    def _set_item(self, event: JsonObject, done: bool) -> None:
        index, item = event.get("output_index"), event.get("item")
        if type(index) is int and isinstance(item, dict) and type(item.get("type")) is str:
            self._items[index] = _Item(item, done)

    def _set_part(self, event: JsonObject) -> None:
        part, item = event.get("part"), self._find_item(event)
        if item is not None and isinstance(part, dict):
            item.set_part(event, part)

    def _finish_text(self, event: JsonObject) -> None:
        kind, item = BY_DONE[event["type"]], self._find_item(event)
        if item is not None and type(event.get(kind.key)) is str:
            item.set_text(kind, event)

    def _add_annotation(self, event: JsonObject) -> None:
        item = self._find_item(event)
        if item is not None and event.get("annotation") is not None:
            item.find_part(OUTPUT_TEXT, event).annotations.append(event["annotation"])

    def _find_item(self, event: JsonObject) -> _Item | None:
        index = event.get("output_index")
        return self._items.get(index) if type(index) is int else None


class _Item:
    """One item of the output, with the texts and parts that have come since it was added."""

    __slots__ = ("body", "done", "parts", "texts")

    def __init__(self, body: JsonObject, done: bool) -> None:
        self.body = body
        self.done = done
        self.texts: dict[str, TextBuffer] = {}
        self.parts: dict[str, dict[int, _Part]] = {}

    def buffer(self, kind: TextKind, event: JsonObject) -> TextBuffer:
        """The buffer of the text that the event continues; a new one if it is the first."""
        if kind.place:
            return self.find_part(kind, event).pieces
        found = self.texts.get(kind.key)
        if found is None:
            found = self.texts[kind.key] = TextBuffer()
        return found

    def set_text(self, kind: TextKind, event: JsonObject) -> None:
        """Replace a text with the whole one of a `done` event."""
        if kind.place:
            part = self.find_part(kind, event)
            part.pieces = TextBuffer(event[kind.key])
            if kind is OUTPUT_TEXT and event.get("logprobs"):
                part.logprobs = [*_as_list(event["logprobs"])]
        else:
            self.texts[kind.key] = TextBuffer(event[kind.key])

    def find_part(self, kind: TextKind, event: JsonObject) -> _Part:
        """The part of the event; a new one if it has not been added."""
        parts = self.parts.get(kind.place)
        if parts is None:
            parts = self.parts[kind.place] = {}
        index = read_position(event, kind.index)
        part = parts.get(index)
        if part is None:
            part = parts[index] = _Part(new_part(kind))
        return part

    def set_part(self, event: JsonObject, body: JsonObject) -> None:
        """Add or replace the part of the event; `body` is the part."""
        place, index = ("summary", "summary_index") if "summary_index" in event else ("content", "content_index")
        self.parts.setdefault(place, {})[read_position(event, index)] = _Part(body)

    def build(self, status: str) -> JsonObject:
        """The item so far; `status` is its status if it has no `done` event."""
        if self.done and not self.texts and not self.parts:
            return self.body
        status = self.body["status"] if self.done and "status" in self.body else status
        if status == "incomplete" and self.body["type"] in _NEVER_INCOMPLETE:
            status = "failed"
        body = {**self.body, "status": status}
        for key, pieces in self.texts.items():
            body[key] = pieces.text()
        for place, parts in self.parts.items():
            body[place] = [part.build() for _, part in sorted(parts.items())]
        return body


class _Part:
    __slots__ = ("annotations", "body", "logprobs", "pieces")

    def __init__(self, body: JsonObject) -> None:
        self.body = body
        self.pieces = TextBuffer()
        self.annotations: list[Any] = []
        self.logprobs: list[Any] = []

    def build(self) -> JsonObject:
        """The part so far."""
        body = dict(self.body)
        if self.pieces:
            body["refusal" if body.get("type") == "refusal" else "text"] = self.pieces.text()
        if self.annotations:
            body["annotations"] = [*_as_list(body.get("annotations")), *self.annotations]
        if self.logprobs:
            body["logprobs"] = [*self.logprobs]
        return body


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_Handler: TypeAlias = Callable[[Accumulator, JsonObject], None]

_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(BEGINNINGS, Accumulator._begin),
    **dict.fromkeys(TERMINALS, Accumulator._end),
    "response.output_item.added": Accumulator._add_item,
    "response.output_item.done": Accumulator._finish_item,
    "response.content_part.added": Accumulator._set_part,
    "response.content_part.done": Accumulator._set_part,
    "response.reasoning_summary_part.added": Accumulator._set_part,
    "response.reasoning_summary_part.done": Accumulator._set_part,
    ANNOTATION_ADDED: Accumulator._add_annotation,
    **dict.fromkeys(BY_DONE, Accumulator._finish_text),
}
