"""Brings the events of one Responses stream into hub form.

The response and each item have one id. The response object has every key. Items and parts are added before their text.
Events have OpenAI's names. The reader, not the normalizer, decides when the stream ends.

Methods that return a bool alter the event in place, and return True if nothing changed.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.repair import repair_event
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk
from dragoman.adapters.validation import Validator

from .accumulator import Accumulator
from .endings import STATUSES, has_known_reason, normalize_status
from .events import (
    BEGINNINGS,
    BY_DELTA,
    REASONING_TEXT,
    SUMMARY_TEXT,
    TERMINALS,
    item_added,
    lifecycle_event,
    new_part,
    part_added,
)
from .filling import HUB_FORMS, fill_event, new_item_id
from .item_positions import ItemPositions
from .normalizer import normalize_response
from .open_texts import OpenTexts
from .response_object import FAILURES

__all__ = ["ResponsesEventNormalizer"]

_RENAMED = {  # Open Responses' names
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
}
_LIFECYCLE = BEGINNINGS | TERMINALS
_UNDER_WAY = "a response whose stream goes on is in progress"
_CUT_SHORT = ("incomplete", "response.completed")
_CONSTANT = ("id", "created_at", "model")
_SAME = {key: f"every event has the same {key} of the response" for key in _CONSTANT}
_VARYING = ("delta", "sequence_number", "obfuscation")


class ResponsesEventNormalizer:
    """The normalizer of one stream. `hub` validates the events that it returns."""

    def __init__(self, hub: Validator, rules: ReplyRules, ctx: Context) -> None:
        self._hub = hub
        self._to_hub_forms = rules.to_hub_forms
        self._changes = StreamChanges(ctx.receipt)
        self._ctx = ctx
        self._accumulator = Accumulator()
        self._open_texts = OpenTexts(self._accumulator)
        self._envelope: JsonObject = {}
        self._ids: dict[int, str] = {}
        self._positions = ItemPositions()
        self._count = 0
        self._last: JsonObject = {}

    def accept_repeat(self, body: Any) -> bool:
        """Accept a delta that differs from the remembered one only in its text and number. Returns False for others.

        The remembered delta was valid and needed no change, so this one needs no normalization. Most events of a stream
        are of this kind.
        """
        last = self._last
        if not last or type(body) is not dict or type(body.get("delta")) is not str:
            return False
        if type(body.get("sequence_number")) is not int or body["sequence_number"] < 0:
            return False
        for key in _VARYING:
            if key in last:
                last[key] = body.get(key)
        if body != last:
            return False
        self._count += 1
        self._accumulator.add(body)
        return True

    def normalize(self, body: JsonObject, raw: bytes | None, remember: bool = True) -> list[Chunk]:
        """Bring an event into hub form. Returns it after the events that the provider omitted before it.

        `raw` is its JSON text. `remember`: later deltas may be compared with it. Raises Fault if it cannot be repaired.
        """
        same = self._positions.place(body) or self._record("each item has a position of its own, in order")
        same &= self._normalize(body)
        if same and remember and body["type"] in BY_DELTA:
            self._last = dict(body)
        chunks = [Chunk(event) for event in self._make_omitted_events(body)]
        self._open_texts.add(body)
        self._accumulator.add(body)
        return [*chunks, Chunk(body, raw if same else None)]

    def make_opening(self, first: JsonObject) -> list[Chunk]:
        """Make `response.created`, for a provider whose stream begins with another event, `first`. Raises Fault."""
        given = first.get("response")
        known = {key: given.get(key) for key in _CONSTANT} if isinstance(given, dict) else {}
        self._record("a stream begins with response.created")
        self._changes.record_fill(("status",), _UNDER_WAY)
        return self.normalize(lifecycle_event("created", {**known, "status": "in_progress"}), None)

    def _make_omitted_events(self, body: JsonObject) -> list[JsonObject]:
        """Make the events that the provider omitted: those that add the item and the part of a delta, or that complete
        a text."""
        kind = BY_DELTA.get(body["type"])
        if kind is None:
            return self._complete_texts(body)
        if not kind.place or self._accumulator.has_part(kind, body):
            return []
        item_id, output_index = body["item_id"], body["output_index"]
        events = [part_added(kind, item_id, output_index, body[kind.index], new_part(kind))]
        if not self._accumulator.has_item(body):
            item = {"type": "reasoning" if kind in (REASONING_TEXT, SUMMARY_TEXT) else "message", "id": item_id}
            events.insert(0, item_added(output_index, item))
        self._record("items and parts are added before their text")
        for event in events:
            self._normalize(event)
            self._accumulator.add(event)
        return events

    def _complete_texts(self, body: JsonObject) -> list[JsonObject]:
        events = self._open_texts.make_omitted_events(body)
        if events:
            self._record("texts and parts are done before their item")
        for event in events:
            self._normalize(event)
            self._accumulator.add(event)
        return events

    def _normalize(self, body: JsonObject) -> bool:
        same = self._set_number(body)
        if self._to_hub_forms is not None and self._to_hub_forms(body):
            same = self._record(HUB_FORMS)
        if body["type"] in _RENAMED:
            body["type"] = _RENAMED[body["type"]]
            same = self._record("reasoning events get OpenAI's names")
        if body["type"] in _LIFECYCLE:
            same &= self._normalize_response(body)
        elif isinstance(body.get("item"), dict):
            same &= self._set_item_id(body)
        elif "item_id" in body or body["type"] in BY_DELTA:
            same &= self._set_event_item_id(body)
        return same if self._hub.accepts(body) else self._repair(body)

    def _set_number(self, body: JsonObject) -> bool:
        number, self._count = self._count, self._count + 1
        if type(body.get("sequence_number")) is int:
            return True
        body["sequence_number"] = number
        return self._record("events are numbered")

    def _normalize_response(self, body: JsonObject) -> bool:
        given = body.get("response")
        if self._is_unchanged(body, given):
            return True
        known = {**given} if isinstance(given, dict) else {}
        if body["type"] == "response.failed":
            known["status"] = "failed"
        elif body["type"] in TERMINALS:
            normalize_status(known, self._ctx)
        elif not isinstance(known.get("status"), str) or known["status"] not in STATUSES:
            known["status"] = "in_progress"
            self._changes.record_fill(("status",), _UNDER_WAY)
        response = normalize_response(known, self._ctx)
        self._envelope = self._envelope or {key: response[key] for key in _CONSTANT}
        for key, reason in _SAME.items():
            if response[key] != self._envelope[key]:
                self._changes.record_conversion((key,), reason)
        response.update(self._envelope)
        if body["type"] in TERMINALS:
            if response["status"] == "failed" or (response["status"], body["type"]) == _CUT_SHORT:
                body["type"] = f"response.{response['status']}"
            response["status"] = body["type"].removeprefix("response.")
            self._set_output(response)
        body["response"] = response
        return self._record("the response object has all its keys, and one id")

    def _is_unchanged(self, body: JsonObject, response: Any) -> bool:
        """Whether the response object of the event needs no change."""
        if not self._hub.accepts(body):
            return False
        self._envelope = self._envelope or {key: response[key] for key in _CONSTANT}
        if any(response[key] != value for key, value in self._envelope.items()):
            return False
        if body["type"] in BEGINNINGS:
            return True
        if bool(response.get("error")) != (str(response["status"]) in FAILURES) and response["status"] != "cancelled":
            return False
        if not has_known_reason(response):
            return False
        if self._sort_output(response["output"]) != response["output"]:
            return False
        has_output = response["output"] or not self._accumulator.output()
        return bool(has_output) and body["type"] == f"response.{response['status']}"

    def _set_output(self, response: JsonObject) -> None:
        """Set the output of the last event: earlier events' items if it has none, else their ids."""
        output = response.get("output")
        known = self._accumulator.output("completed" if response["status"] == "completed" else "incomplete")
        if not output and known:
            response["output"] = known
            self._record("the output is assembled from earlier events")
        elif isinstance(output, list) and len(output) == len(self._ids):
            response["output"] = self._sort_output(output)
            for item, (_, item_id) in zip(response["output"], sorted(self._ids.items()), strict=True):
                if isinstance(item, dict) and "id" in item:
                    item["id"] = item_id

    def _sort_output(self, output: list[Any]) -> list[Any]:
        """Sort the items of the last event as the stream has them. If an id is unknown, nobody knows their order."""
        positions = {item_id: index for index, item_id in self._ids.items()}
        ids = [item.get("id") if isinstance(item, dict) else None for item in output]
        if not all(isinstance(item_id, str) and item_id in positions for item_id in ids):
            return output
        return sorted(output, key=lambda item: positions[item["id"]])

    def _set_item_id(self, body: JsonObject) -> bool:
        item = body["item"]
        index, same = self._set_output_index(body, item.get("id"))
        item_id = self._ids.get(index)
        if item_id is None:
            item_id = self._ids[index] = str(item.get("id") or new_item_id(item, self._ctx))
        if item.get("id") == item_id:
            return same
        item["id"] = item_id
        return self._record("each item has one id", ("output", index, "id"))

    def _set_event_item_id(self, body: JsonObject) -> bool:
        index, same = self._set_output_index(body, body.get("item_id"))
        item_id = self._ids.get(index)
        if item_id is None or body.get("item_id") == item_id:
            return same
        body["item_id"] = item_id
        return self._record("each item has one id", ("output", index, "id"))

    def _set_output_index(self, body: JsonObject, item_id: Any) -> tuple[int, bool]:
        index = body.get("output_index")
        if type(index) is int:
            return index, True
        index = next((known for known, its_id in self._ids.items() if its_id == item_id), len(self._ids))
        body["output_index"] = index
        return index, self._record("events get the position of their item")

    def _repair(self, body: JsonObject) -> bool:
        fill_event(body, self._ctx)
        repair_event(body, self._hub)
        return self._record("missing keys are filled; nulls that the schema forbids are removed")

    def _record(self, reason: str, path: Path = ("output",)) -> bool:
        self._changes.record_conversion(path, reason)
        return False
