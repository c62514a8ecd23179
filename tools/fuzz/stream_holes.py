"""Compares two streams of the same protocol by path: lists values that one of them has at a path and the other has not,
if no change in the receipt is about that path.

Positions in lists do not count, because chunks are divided and choices are numbered in other ways. In Responses, the
type of the event is a part of the path. The pieces of texts are compared elsewhere, as whole texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from dragoman.adapters.changes import Change
from dragoman.adapters.paths import Path, format_path
from dragoman.contract.json_types import JsonObject

from .receipt_holes import PIECES, WHOLE, Values, is_empty, is_named, leaves

__all__ = ["find_stream_holes"]

_WHOLE = WHOLE - {("tools",)}
_ENVELOPE = ("id", "object", "created", "model", "system_fingerprint")
"""What an event without choices need not repeat."""
_OF_ITEMS = frozenset({"type", "item", "part", "item_id", "annotation", "logprobs"})
"""Keys of the events that are about items, at whatever path of the output a change is recorded."""
_OF_BLOCKS = frozenset({"index", "content_block", "delta"})
"""Keys of the events that are about the blocks of a message, at whatever path of its content a change is recorded."""

_Found = dict[tuple[Path, bytes], Any]


def find_stream_holes(
    before: JsonObject, after: JsonObject, changes: Sequence[Change], exempt: frozenset[str]
) -> Iterator[str]:
    """Sentences about each hole. Both bodies are `{"events": [...]}`; values under a key in `exempt` may differ."""
    given, got = _collect(before["events"], exempt), _collect(after["events"], exempt)
    new = Values(after)
    needed = _collect([event for event in before["events"] if event.get("choices") not in (None, [])], exempt)
    for at in given.keys() - got.keys():
        if at[0][0] in _ENVELOPE and at not in needed:
            continue  # the chunks have the envelope
        if not _is_explained(at[0], changes) and not (_is_moved(at[0], changes) and new.have(given[at])):
            yield f"{format_path(at[0])} = {given[at]!r} was lost in silence"
    for at in got.keys() - given.keys():
        if not (_is_explained(at[0], changes) or _is_moved(at[0], changes)):
            yield f"{format_path(at[0])} = {got[at]!r} appeared in silence"


def _collect(events: Sequence[JsonObject], exempt: frozenset[str]) -> _Found:
    found: _Found = {}
    has_choices = any("choices" in event for event in events)
    for event in events:
        if not has_choices and not str(event.get("type") or "response.").startswith("response."):
            continue  # none of a response: the receipt says that these are left out
        for path, value in leaves(event):
            keys = [part for part in path if isinstance(part, str)]
            if not is_empty(value) and keys and keys[-1] not in PIECES and exempt.isdisjoint(keys):
                found[tuple(keys), orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS)] = value
    return found


def _is_explained(path: Path, changes: Sequence[Change]) -> bool:
    """Whether a change is about a value, or a list of keys that the provider left out has it."""
    if any(change.action == "filled" and is_named(_trim(path), change.reason) for change in changes):
        return True
    return any(place not in _WHOLE or change.weight == "loss" for change, place in _find_changes(path, changes))


def _is_moved(path: Path, changes: Sequence[Change]) -> bool:
    """Whether a change is about the whole answer that has the value."""
    return any(True for _ in _find_changes(path, changes))


def _find_changes(path: Path, changes: Sequence[Change]) -> Iterator[tuple[Change, Path]]:
    for change in changes:
        for place in (change.before, change.after):
            if place and _is_about(tuple(part for part in place if isinstance(part, str)), _trim(path)):
                yield change, place


def _trim(path: Path) -> Path:
    """Changes are about the response or the message, not about its events."""
    return path[1:] if path[0] in ("response", "message") and len(path) > 1 else path


def _is_about(place: Path, path: Path) -> bool:
    if place[:1] == ("output",) and path[0] in _OF_ITEMS:
        inner = path[1:] if path[0] == "item" else ("id",) if path[0] == "item_id" else path
        return inner[: len(place) - 1] == place[1:]
    if place[:1] == ("content",) and path[0] in _OF_BLOCKS:
        inner = path[1:] if path[0] == "content_block" else path
        return len(place) == 1 or inner[: len(place) - 1] == place[1:]
    return path[: len(place)] == place
