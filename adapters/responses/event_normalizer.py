"""Brings the events of one Responses stream into hub form.

The response and each item have one id. The response object has every key. Items and parts are added before their text.
Events have OpenAI's names. The reader, not the normalizer, decides when the stream ends.

Methods that return a bool alter the event in place, and return True if nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.common.repair import repair_event
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk
from dragoman.adapters.validation import Validator

from .accumulator import Accumulator
from .endings import STATUSES, has_known_reason, normalize_status
from .events import (
    ANNOTATION_ADDED,
    BEGINNINGS,
    BY_DELTA,
    OUTPUT_TEXT,
    REASONING_TEXT,
    SUMMARY_TEXT,
    TERMINALS,
    item_added,
    item_done,
    lifecycle_event,
    new_part,
    part_added,
)
from .filling import HUB_FORMS, fill_event, new_item_id
from .item_positions import DONE, ItemPositions
from .item_texts import add_missing_texts, lacks_text, says_otherwise
from .normalizer import normalize_response
from .open_texts import OpenTexts, read_whole
from .response_object import FAILURES
from .restream import split_items
from .text_annotations import UNKNOWN_ANNOTATION, fill_annotation, is_annotation

__all__ = ["ResponsesEventNormalizer"]

_RENAMED = {  # Open Responses' names
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
}
_LIFECYCLE = BEGINNINGS | TERMINALS
_UNDER_WAY = "a response whose stream goes on is in progress"
_CUT_SHORT = ("incomplete", "response.completed")
_CONSTANT = ("id", "created_at", "model")
_COMPLETED = "an item that is done gets the texts that came in pieces"
_CONTRADICTION = "an item does not say the same in pieces, when it is done, and in the last event"
_SHOWN = "items come before the end of the response"
_ANNOTATED = "a citation has a title and a position"
_PART_POSITIONS = ("content_index", "summary_index")
_ONE_ID = "each item has one id of its own"
_REPETITIONS: dict[Weight, str] = {
    "form": "what begins or completes a part of the response again is left out",
    "loss": "what an item or a text says after it is done is left out, though it is something else",
}
_SAME = {key: f"every event has the same {key} of the response" for key in _CONSTANT}
_ENDS = ("response.completed", "response.incomplete")
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
        same = self._rename(body) & self._set_part_position(body)
        same &= self._positions.place(body) or self._record("each item has a position of its own, in order")
        if (weight := self._open_texts.find_repetition(body)) is not None:
            self._changes.record_drop(("output", body["output_index"]), _REPETITIONS[weight], weight)
            return []
        if body["type"] == ANNOTATION_ADDED:
            same &= self._fill_annotation(body)
            if not is_annotation(body.get("annotation")):
                self._changes.record_drop(("output", body.get("output_index", 0)), UNKNOWN_ANNOTATION)
                return []
        same &= self._normalize(body)
        if body["type"] == DONE:
            same &= self._complete_done_item(body)
        elif self._open_texts.contradicts(body):
            self._changes.record_conversion(("output", body["output_index"]), _CONTRADICTION, "loss")
        if body["type"] not in BY_DELTA:
            self._last = {}
        elif same and remember:
            self._last = dict(body)
        chunks = [Chunk(event) for event in self._make_omitted_events(body)]
        self._open_texts.add(body)
        self._accumulator.add(body)
        return [*chunks, Chunk(body, raw if same else None)]

    def _fill_annotation(self, body: JsonObject) -> bool:
        """Fill the annotation of an event, in place. True if nothing changed."""
        if is_annotation(body.get("annotation")):
            return True
        fill_annotation(body.get("annotation"), len(self._accumulator.find_text(OUTPUT_TEXT, body) or ""))
        return self._record(_ANNOTATED)

    def make_opening(self, first: JsonObject) -> list[Chunk]:
        """Make `response.created`, for a provider whose stream begins with another event, `first`. Raises Fault."""
        given = first.get("response")
        known = {key: given.get(key) for key in _CONSTANT} if isinstance(given, dict) else {}
        self._record("a stream begins with response.created")
        self._changes.record_fill(("status",), _UNDER_WAY)
        return self.normalize(lifecycle_event("created", {**known, "status": "in_progress"}), None)

    def _make_omitted_events(self, body: JsonObject) -> list[JsonObject]:
        """Make the events that the provider omitted: those that add the item and the part of a text, or that complete
        texts, parts and items."""
        if body["type"] in _ENDS:
            return self._finish_items(body["response"])
        events = self._begin_part(body)
        return events + self._add_omitted(
            "texts and parts are done before their item", self._open_texts.finish_before(body)
        )

    def _begin_part(self, body: JsonObject) -> list[JsonObject]:
        kind = BY_DELTA.get(body["type"]) or read_whole(body)[0]
        if kind is None or not kind.place or self._accumulator.has_part(kind, body):
            return []
        item_id, output_index = body["item_id"], body["output_index"]
        events = []
        if not self._accumulator.has_item(body):
            item = {"type": "reasoning" if kind in (REASONING_TEXT, SUMMARY_TEXT) else "message", "id": item_id}
            events.append(item_added(output_index, item))
        if body["type"] != kind.part_added:
            events.append(part_added(kind, item_id, output_index, body[kind.index], new_part(kind)))
        return self._add_omitted("items and parts are added before their text", events)

    def _finish_items(self, response: JsonObject) -> list[JsonObject]:
        """Make the events that complete the items that are still open at the end of the response, or those of all its
        items if no event has shown one: clients may read items from their events alone."""
        known = self._list_items(response)
        if not known:
            return self._add_omitted(_SHOWN, [*split_items(response["output"])])
        last = {item.get("id"): item for item in response["output"]}
        events = []
        for position, item in known.items():
            events += self._open_texts.finish_item(position)
            if not self._accumulator.is_done(position):
                events.append(item_done(position, {**last.get(item.get("id"), item)}))
        return self._add_omitted("items are done before the end of the response", events)

    def _add_omitted(self, reason: str, events: list[JsonObject]) -> list[JsonObject]:
        if events:
            self._record(reason)
        for event in events:
            self._normalize(event)
            self._accumulator.add(event)
        return events

    def _complete_done_item(self, body: JsonObject) -> bool:
        """Add the texts that have come in pieces to an item that is done without them. True if nothing changed."""
        known = self._accumulator.items().get(body["output_index"])
        if known is None:
            return True
        self._compare_texts(body["output_index"], known, body["item"])
        return not add_missing_texts(body["item"], known) or self._record(_COMPLETED)

    def _compare_texts(self, position: int, known: JsonObject, item: JsonObject) -> None:
        """Record it if an item has other texts than before: the client gets both, or only one of them."""
        if says_otherwise(item, known):
            self._changes.record_conversion(("output", position), _CONTRADICTION, "loss")

    def _normalize(self, body: JsonObject) -> bool:
        same = self._set_number(body)
        if self._to_hub_forms is not None and self._to_hub_forms(body):
            same = self._record(HUB_FORMS)
        if body["type"] in _LIFECYCLE:
            same &= self._normalize_response(body)
        elif isinstance(body.get("item"), dict):
            same &= self._set_item_id(body)
        elif "item_id" in body or body["type"] in BY_DELTA:
            same &= self._set_event_item_id(body)
        return same if self._hub.accepts(body) else self._repair(body)

    def _rename(self, body: JsonObject) -> bool:
        if body["type"] not in _RENAMED:
            return True
        body["type"] = _RENAMED[body["type"]]
        return self._record("reasoning events get OpenAI's names")

    def _set_part_position(self, body: JsonObject) -> bool:
        wrong = [key for key in _PART_POSITIONS if key in body and type(body[key]) is not int]
        body.update(dict.fromkeys(wrong, 0))
        return not wrong or self._record("the position of a part is a whole number")

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
        output, known = response["output"], self._list_items(response)
        if self._sort_output(output) != output or (known and not output):
            return False
        matched = [*self._match_items(output, known)]
        if any(self._ids[position] != item["id"] or lacks_text(item, known[position]) for position, item in matched):
            return False
        for position, item in matched:
            self._compare_texts(position, known[position], item)
        return bool(body["type"] == f"response.{response['status']}")

    def _set_output(self, response: JsonObject) -> None:
        """Set the output of the last event: earlier events' items if it has none; else its own, with the ids that they
        had, and with what they lack of those events' texts."""
        output, known = response.get("output"), self._list_items(response)
        if not output and known:
            response["output"] = [*known.values()]
            self._record("the output is assembled from earlier events")
        elif isinstance(output, list):
            for position, item in self._match_items(output, known):
                item["id"] = self._ids[position]
                self._compare_texts(position, known[position], item)
                if add_missing_texts(item, known[position]):
                    self._record(_COMPLETED)
            response["output"] = self._sort_output(output)

    def _list_items(self, response: JsonObject) -> dict[int, JsonObject]:
        return self._accumulator.items("completed" if response.get("status") == "completed" else "incomplete")

    def _match_items(self, output: list[Any], known: dict[int, JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Pair items of the last event with positions of earlier ones: those with the same id; if as many of the others
        have the same types, those too, in order. Some servers give an item another id in each event."""
        positions = {item_id: index for index, item_id in self._ids.items() if index in known}
        unknown = []
        for item in output:
            if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"] in positions:
                yield positions.pop(item["id"]), item
            elif isinstance(item, dict):
                unknown.append(item)
        free = sorted(positions.values())
        if [item.get("type") for item in unknown] == [known[position]["type"] for position in free]:
            yield from zip(free, unknown, strict=True)

    def _sort_output(self, output: list[Any]) -> list[Any]:
        """Sort the items of the last event as the stream has them. If an id is unknown, nobody knows their order."""
        positions = {item_id: index for index, item_id in self._ids.items()}
        ids = [item.get("id") if isinstance(item, dict) else None for item in output]
        if not all(isinstance(item_id, str) and item_id in positions for item_id in ids):
            return output
        return sorted(output, key=lambda item: positions[item["id"]])

    def _set_item_id(self, body: JsonObject) -> bool:
        item, index = body["item"], body["output_index"]
        item_id = self._ids.get(index)
        if item_id is None:
            given = str(item.get("id") or "")
            item_id = self._ids[index] = given if given and not self._is_taken(given) else new_item_id(item, self._ctx)
        if item.get("id") == item_id:
            return True
        item["id"] = item_id
        return self._record(_ONE_ID, ("output", index, "id"))

    def _set_event_item_id(self, body: JsonObject) -> bool:
        index, given = body["output_index"], body.get("item_id")
        item_id = self._ids.get(index)
        if item_id is None and isinstance(given, str) and self._is_taken(given):
            item_id = self._ids[index] = new_item_id({}, self._ctx)
        if item_id is None or given == item_id:
            return True
        body["item_id"] = item_id
        return self._record(_ONE_ID, ("output", index, "id"))

    def _is_taken(self, item_id: str) -> bool:
        """Whether another item has the id: some servers give all items the same."""
        return item_id in self._ids.values()

    def _repair(self, body: JsonObject) -> bool:
        fill_event(body, self._ctx)
        repair_event(body, self._hub)
        return self._record("missing keys are filled; nulls that the schema forbids are removed")

    def _record(self, reason: str, path: Path = ("output",)) -> bool:
        self._changes.record_conversion(path, reason)
        return False
