"""Mending the events of one Responses stream. The reader decides what an event means for the stream; this keeps them
uniform: one id for the response and one for each item, every key of the response object, items and parts added before
their text, OpenAI's names.

Methods that mend alter the event in place, and return True where it was left as it came.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.repair import repair
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk
from dragoman.adapters.validation import Judge

from .accumulator import Accumulator
from .base import FAILURES
from .events import (
    BEGINNINGS,
    BY_DELTA,
    REASONING_TEXT,
    SUMMARY_TEXT,
    TERMINALS,
    item_added,
    lifecycle,
    new_part,
    part_added,
)
from .filling import fill_event, new_item_id
from .reply import hub_response

__all__ = ["EventMender"]

_RENAMED = {  # Open Responses' names
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
}
_LIFECYCLE = BEGINNINGS | TERMINALS
_CONSTANT = ("id", "created_at", "model")
_VARYING = ("delta", "sequence_number", "obfuscation")


class EventMender:
    """`hub` is the judge of what comes out."""

    def __init__(self, hub: Judge, reading: Reading, ctx: Context) -> None:
        self._hub = hub
        self._forms = reading.mend
        self._ctx = ctx
        self._sum = Accumulator()
        self._envelope: JsonObject = {}
        self._ids: dict[int, str] = {}
        self._count = 0
        self._last: JsonObject = {}
        self._told: set[str] = set()

    def repeats(self, body: Any) -> bool:
        """True for a piece of text that differs from the remembered one in its text and number only: whatever made that
        one valid, and left it as it was, holds for this one. Most events of a stream are of this kind."""
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
        self._sum.add(body)
        return True

    def chunks(self, body: JsonObject, raw: bytes | None, remember: bool = True) -> list[Chunk]:
        """The event in hub form, behind those that should have come before it. Raises Fault where that can't be."""
        same = self._mend(body)
        if same and remember and body["type"] in BY_DELTA:
            self._last = dict(body)
        chunks = self._omitted(body)
        self._sum.add(body)
        return [*chunks, Chunk(body, raw if same else None)]

    def opening(self, first: JsonObject) -> list[Chunk]:
        """The event that a stream begins with, for a provider that began with another."""
        told = first.get("response")
        known = {key: told.get(key) for key in _CONSTANT} if isinstance(told, dict) else {}
        self._tell("a stream begins with response.created")
        return self.chunks(lifecycle("created", {**known, "status": "in_progress"}), None)

    def _omitted(self, body: JsonObject) -> list[Chunk]:
        """For a piece of text: that its item is added, that its part is added."""
        kind = BY_DELTA.get(body["type"])
        if kind is None or not kind.place or self._sum.has_part(kind, body):
            return []
        item_id, output_index = body["item_id"], body["output_index"]
        events = [part_added(kind, item_id, output_index, body[kind.index], new_part(kind))]
        if not self._sum.has_item(body):
            item = {"type": "reasoning" if kind in (REASONING_TEXT, SUMMARY_TEXT) else "message", "id": item_id}
            events.insert(0, item_added(output_index, item))
        self._tell("items and parts are added before their text")
        return [chunk for event in events for chunk in self.chunks(event, None)]

    def _mend(self, body: JsonObject) -> bool:
        same = self._number(body)
        if self._forms is not None and self._forms(body):
            same = self._tell("tools, formats and calls in the hub's forms")
        if body["type"] in _RENAMED:
            body["type"] = _RENAMED[body["type"]]
            same = self._tell("reasoning events have OpenAI's names")
        if body["type"] in _LIFECYCLE:
            same &= self._response(body)
        elif isinstance(body.get("item"), dict):
            same &= self._item(body)
        elif "item_id" in body or body["type"] in BY_DELTA:
            same &= self._item_id(body)
        return same if self._hub.ok(body) else self._repair(body)

    def _number(self, body: JsonObject) -> bool:
        number, self._count = self._count, self._count + 1
        if type(body.get("sequence_number")) is int:
            return True
        body["sequence_number"] = number
        return self._tell("events are numbered")

    def _response(self, body: JsonObject) -> bool:
        given = body.get("response")
        if self._is_whole(body, given):
            return True
        told = given if isinstance(given, dict) else {}
        if body["type"] == "response.failed":
            told = {**told, "status": "failed"}
        response = hub_response(told, self._ctx)
        self._envelope = self._envelope or {key: response[key] for key in _CONSTANT}
        response.update(self._envelope)
        if body["type"] in TERMINALS:
            if response["status"] == "failed":
                body["type"] = "response.failed"
            response["status"] = body["type"].removeprefix("response.")
            self._settle_output(response)
        body["response"] = response
        return self._tell("the response object has all its keys, and one id")

    def _is_whole(self, body: JsonObject, response: Any) -> bool:
        """True for a response object that needs no mending."""
        if not self._hub.ok(body):
            return False
        self._envelope = self._envelope or {key: response[key] for key in _CONSTANT}
        if any(response[key] != value for key, value in self._envelope.items()):
            return False
        if body["type"] in BEGINNINGS:
            return True
        if bool(response.get("error")) != (str(response["status"]) in FAILURES) and response["status"] != "cancelled":
            return False
        told = response["output"] or not self._sum.output()
        return bool(told) and body["type"] == f"response.{response['status']}"

    def _settle_output(self, response: JsonObject) -> None:
        """What the items were, where the last event does not tell; else the ids that they had."""
        output = response.get("output")
        known = self._sum.output("completed" if response["status"] == "completed" else "incomplete")
        if not output and known:
            response["output"] = known
            self._tell("the output is put together from the events before")
        elif isinstance(output, list) and len(output) == len(self._ids):
            for item, (_, item_id) in zip(output, sorted(self._ids.items()), strict=True):
                if isinstance(item, dict) and "id" in item:
                    item["id"] = item_id

    def _item(self, body: JsonObject) -> bool:
        item = body["item"]
        index, same = self._index(body, item.get("id"))
        item_id = self._ids.get(index)
        if item_id is None:
            item_id = self._ids[index] = str(item.get("id") or new_item_id(item, self._ctx))
        if item.get("id") == item_id:
            return same
        item["id"] = item_id
        return self._tell("each item has one id")

    def _item_id(self, body: JsonObject) -> bool:
        index, same = self._index(body, body.get("item_id"))
        item_id = self._ids.get(index)
        if item_id is None or body.get("item_id") == item_id:
            return same
        body["item_id"] = item_id
        return self._tell("each item has one id")

    def _index(self, body: JsonObject, item_id: Any) -> tuple[int, bool]:
        index = body.get("output_index")
        if type(index) is int:
            return index, True
        index = next((known for known, its_id in self._ids.items() if its_id == item_id), len(self._ids))
        body["output_index"] = index
        return index, self._tell("events tell the item's position")

    def _repair(self, body: JsonObject) -> bool:
        fill_event(body, self._ctx)
        violation = repair(body, self._hub)
        if violation is not None:
            message = f"the provider sent an event that cannot be mended: {violation.message}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
        return self._tell("keys that are always there are filled, nulls that may not be are left out")

    def _tell(self, reason: str) -> bool:
        """Into the receipt, once per stream: the same mending happens to event after event."""
        if reason not in self._told:
            self._told.add(reason)
            self._ctx.receipt.converted(("output",), reason)
        return False
