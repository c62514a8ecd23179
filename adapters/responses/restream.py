"""Turns a whole response into the events of a stream, if the client asked for a stream and the provider sent none."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.adapters.call import JsonObject

from .events import (
    ARGUMENTS,
    INPUT,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    annotation_added,
    item_added,
    item_done,
    lifecycle_event,
    new_part,
    part_added,
    part_done,
    text_delta,
    text_done,
)

__all__ = ["restream_response", "split_items"]

_TERMINAL = {"completed": "completed", "incomplete": "incomplete", "cancelled": "cancelled"}
_PARTS = {kind.holder: kind for kind in (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY_TEXT)}
_ITEMS = {kind.holder: kind for kind in (ARGUMENTS, INPUT)}
_PLACES = ("content", "summary")


def restream_response(response: JsonObject) -> list[JsonObject]:
    """Split a hub response into hub events; each text is one delta."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    begun["incomplete_details"] = begun["error"] = None
    events = [lifecycle_event(word, begun) for word in ("created", "in_progress")]
    return [
        *events,
        *split_items(response["output"]),
        lifecycle_event(_TERMINAL.get(response["status"], "failed"), response),
    ]


def split_items(output: list[JsonObject]) -> Iterator[JsonObject]:
    """Split the items of a hub response into the events that show them; each text is one delta."""
    for index, item in enumerate(output):
        yield from _split_item(item, index)


def _split_item(item: JsonObject, index: int) -> Iterator[JsonObject]:
    begun = {**item, "status": "in_progress"}
    places = [place for place in _PLACES if isinstance(item.get(place), list)]
    begun.update({place: [] for place in places})
    kind = _ITEMS.get(item["type"])
    if kind is not None:
        begun[kind.key] = ""
    yield item_added(index, begun if kind or places else item)
    if kind is not None and item[kind.key]:
        yield text_delta(kind, item["id"], index, 0, item[kind.key])
    if kind is not None:
        yield text_done(kind, item["id"], index, 0, item[kind.key])
    for place in places:
        for position, part in enumerate(item[place]):
            yield from _split_part(part, item["id"], index, position)
    yield item_done(index, item)


def _split_part(part: JsonObject, item_id: str, index: int, position: int) -> Iterator[JsonObject]:
    kind = _PARTS.get(part["type"])
    if kind is None:
        return  # the item itself has it
    text, logprobs = part[kind.key], part.get("logprobs")
    yield part_added(kind, item_id, index, position, new_part(kind))
    if text:
        yield text_delta(kind, item_id, index, position, text, logprobs)
    for number, annotation in enumerate(part.get("annotations") or ()):
        yield annotation_added(item_id, index, position, number, annotation)
    yield text_done(kind, item_id, index, position, text, logprobs)
    yield part_done(kind, item_id, index, position, part)
