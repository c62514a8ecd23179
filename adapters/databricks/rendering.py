"""Write the events of a documented Databricks stream, whose output has only messages.

Events about other items are dropped, and the positions of the remaining items are renumbered without gaps.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.responses.events import OUTPUT_TEXT, REFUSAL

from .function_blocks import convert_refusal_part, pack_output_item, record_packing

__all__ = ["DocumentedEvents"]

_AS_TEXT = {REFUSAL.delta: OUTPUT_TEXT.delta, REFUSAL.done: OUTPUT_TEXT.done}


class DocumentedEvents:
    """Converts the events of one hub stream to the documented form."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._positions: dict[int, int | None] = {}

    def render(self, event: JsonObject) -> JsonObject | None:
        """Return the event in the documented form; None if it is dropped."""
        index = event.get("output_index")
        if type(index) is not int:
            return event
        item = event.get("item")
        if isinstance(item, dict):
            if event["type"] == "response.output_item.done":
                record_packing(item, ("output", index), self._ctx)
            if "status" not in item:
                self._ctx.receipt.record_fill(("output", index, "status"), "the documented item has one")
            item = pack_output_item({"status": "in_progress", **item})
            self._assign_position(index, item)
        place = self._positions.get(index, index)
        if place is None:
            return None
        made = {**event, "output_index": place}
        if item is not None:
            made["item"] = item
        return _convert_refusal(made)

    def _assign_position(self, index: int, item: JsonObject | None) -> None:
        if index not in self._positions:
            kept = sum(place is not None for place in self._positions.values())
            self._positions[index] = None if item is None else kept
            if item is None:
                self._ctx.receipt.record_drop(("output", index), "the documented output has messages only")


def _convert_refusal(event: JsonObject) -> JsonObject:
    """Return an event about a refusal as one about text, and any other event unchanged."""
    if isinstance(event.get("part"), dict):
        return {**event, "part": convert_refusal_part(event["part"])}
    kind = _AS_TEXT.get(event["type"])
    if kind is None:
        return event
    made = {key: value for key, value in event.items() if key != "refusal"}
    if "refusal" in event:
        made["text"] = event["refusal"]
    return {**made, "type": kind, "logprobs": []}
