"""Compares two bodies: lists what differs without a change in the receipt, and changes without a difference.

A value of one body is *found* in the other if it has the same path, as far as the receipt maps paths, or if the other
body has the same value, or a text that contains it, somewhere. A change that is about a whole conversation or a whole
answer ("items become messages") only explains that values moved, not that one is gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.adapters.changes import Change
from dragoman.adapters.paths import Path, format_path, lookup
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["find_holes", "join_events", "leaves"]

_WHOLE = {("messages",), ("input",), ("tools",), ("choices",), ("output",), ("prompt",), ()}
_WORDS = {"type", "object", "role", "index", "status", "id", "model", "sequence_number", "output_index"}
_WORDS |= {"content_index", "summary_index", "annotation_index", "item_id"}
_PIECES = {"content", "text", "delta", "arguments", "input", "reasoning_content", "refusal"}
_NOTHING: tuple[Any, ...] = (None, "", [], {}, 0, False)


def leaves(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The values that hold no others, with their paths; an empty list or object is one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items:
        yield path, value
    for key, child in items:
        yield from leaves(child, (*path, key))


def join_events(events: Sequence[JsonObject]) -> JsonObject:
    """All that the events of a stream say: each key with the list of its values; the pieces of a text are joined."""
    texts: dict[str, str] = defaultdict(str)
    for event in events:
        for path, value in leaves(event):
            if isinstance(value, str) and path[-1] in _PIECES:
                texts[str(path[-1])] += value
    return {"events": list(events), "joined": dict(texts)}


class _Values:
    """The values of a body."""

    def __init__(self, body: JsonObject) -> None:
        found = [value for _, value in leaves(body)]
        self._numbers = {value for value in found if isinstance(value, int | float)}
        self._texts = [value for value in found if isinstance(value, str) and value]

    def have(self, value: Any) -> bool:
        if isinstance(value, str):
            return any(value in text for text in self._texts)
        return value in self._numbers if isinstance(value, int | float) else False

    def have_parts_of(self, value: Any) -> bool:
        """Whether a text is put together from texts of the body."""
        if not isinstance(value, str) or any(text in value for text in self._texts if len(text) > 1):
            return isinstance(value, str)
        for text in self._texts:
            value = value.replace(text, "")
        return not value


def _starts(path: Path, place: Path) -> bool:
    return path[: len(place)] == place


def _is_precise(change: Change) -> bool:
    """Whether a change explains new values: that of a whole container does not, unless all of it is emulated."""
    return (change.after or change.before) not in _WHOLE or change.action == "emulated"


def find_holes(
    before: JsonObject,
    after: JsonObject,
    changes: Sequence[Change],
    unmap: Callable[[Path], Path] = lambda path: path,
    *,
    exempt: frozenset[str] = frozenset(),
) -> list[str]:
    """Sentences about each hole. Values under a top-level key in `exempt` may differ."""
    arrived = {unmap(path): value for path, value in leaves(after)}
    old, new = _Values(before), _Values(after)
    holes = []
    for path, value in leaves(before):
        if _is_negligible(path, value, exempt) or arrived.get(path) == value:
            continue
        about = [change for change in changes if change.before and _is_about(change.before, path)]
        if not any(change.before not in _WHOLE or change.weight == "loss" for change in about) and not new.have(value):
            holes.append(f"{format_path(path)} = {value!r} was lost in silence")
    for path, value in leaves(after):
        if _is_negligible(path, value, exempt) or lookup(before, unmap(path)) == value:
            continue
        about = [change for change in changes if change.after and _is_about(change.after, path)]
        about += [change for change in changes if change.before and _starts(unmap(path), change.before)]
        known = old.have(value) or old.have_parts_of(value)
        if not any(map(_is_precise, about)) and not known:
            holes.append(f"{format_path(path)} = {value!r} appeared in silence")
    judged = [change for change in changes if exempt.isdisjoint(map(str, (change.before or change.after)[:1]))]
    return [*holes, *_list_false_changes(before, after, judged)]


def _is_about(place: Path, path: Path) -> bool:
    """Whether a change at `place` is about `path`; in an event of a stream, the same keys have other positions."""
    if _starts(path, place) or (place[:1] == ("output",) and len(place) > 1 and "choices" in path):
        return True  # a choice had become an item before it was dropped
    if path[:1] == ("output",) and place[:1] == ("choices",) and len(place) > 1:
        return True  # an item had become a choice
    inner = path[2:] if path[:1] == ("events",) else path[1:] if path[:1] == ("joined",) else None
    if inner is None:
        return False
    names = [part for part in place if isinstance(part, str)]
    return bool(names) and names[-1] in inner


def _is_negligible(path: Path, value: Any, exempt: frozenset[str]) -> bool:
    keys = [part for part in path if isinstance(part, str)]
    return value in _NOTHING or not keys or keys[-1] in _WORDS or "role" in keys or not exempt.isdisjoint(keys)


def _list_false_changes(before: JsonObject, after: JsonObject, changes: Sequence[Change]) -> Iterator[str]:
    """Changes that claim what is not so: a value that was dropped is still there, one that was filled was there."""
    for change in changes:
        if change.action == "dropped" and change.weight == "loss" and len(change.before) == 1:
            value = lookup(before, change.before)
            if value not in _NOTHING and lookup(after, change.before) == value:
                yield f"{format_path(change.before)} was not dropped: {change.reason}"
        if change.action == "filled" and len(change.after) == 1 and "output" not in change.after:
            value = lookup(after, change.after)
            if value not in _NOTHING and lookup(before, change.after) == value:
                yield f"{format_path(change.after)} was not filled: {change.reason}"
