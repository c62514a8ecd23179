"""Compares two bodies: lists what differs without a change in the receipt, and changes without a difference.

A value of one body is *found* in the other if it has the same path, as far as the receipt maps paths, or if the other
body has the same value, or a text that contains it, somewhere. A change that is about a whole conversation or a whole
answer ("items become messages") only explains that values moved, not that one is gone.

If both bodies are of the same protocol, they are compared *by path*: a value that is somewhere else is not found,
unless a change says that values moved, and small numbers, roles, types and ids count too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.adapters.changes import Change
from dragoman.adapters.paths import Path, format_path, lookup
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = [
    "PIECES",
    "WHOLE",
    "Values",
    "find_holes",
    "is_empty",
    "is_named",
    "join_events",
    "leaves",
    "map_positions",
    "trim_value",
]

WHOLE: frozenset[Path] = frozenset(
    {("messages",), ("system",), ("input",), ("tools",), ("choices",), ("output",), ("content",), ("prompt",), ()}
)
_WORDS = {"type", "object", "role", "index", "status", "id", "model", "sequence_number", "output_index"}
_WORDS |= {"content_index", "summary_index", "annotation_index", "item_id"}
PIECES = {"content", "text", "delta", "arguments", "input", "reasoning_content", "refusal"}
_BLOCK_KEYS = frozenset({"content_block", "delta"})
"""Keys of the events of Messages that are about the blocks of the message."""
_VALUE = re.compile(r" = .* (?=was lost|appeared)", re.DOTALL)
_NOTHING: tuple[Any, ...] = (None, "", [], {}, 0, False)


def trim_value(hole: str) -> str:
    """The sentence about a hole without the value: holes at the same place have the same cause."""
    return _VALUE.sub(" ", hole)[:80]


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
            if isinstance(value, str) and path[-1] in PIECES:
                texts[str(path[-1])] += value
    return {"events": list(events), "joined": dict(texts)}


class Values:
    """The values of a body."""

    def __init__(self, body: JsonObject) -> None:
        self._body = body
        found = [value for _, value in leaves(body)]
        self._numbers = {value for value in found if isinstance(value, int | float)}
        self._texts = [value for value in found if isinstance(value, str) and value]

    def have(self, value: Any) -> bool:
        """Whether the body has the value, a text that contains it, or the object that it spells; JSON may contain a
        number."""
        if isinstance(value, str):
            return any(value in text for text in self._texts) or self._have_object(value)
        if not isinstance(value, int | float):
            return False
        return value in self._numbers or any(json.dumps(value) in text for text in self._texts if text.startswith("{"))

    def have_parts_of(self, value: Any) -> bool:
        """Whether a text is put together from texts of the body."""
        if not isinstance(value, str) or any(text in value for text in self._texts if len(text) > 1):
            return isinstance(value, str)
        for text in self._texts:
            value = value.replace(text, "")
        return not value.strip()  # texts are joined by empty lines

    def _have_object(self, text: str) -> bool:
        """Whether the text is JSON of an object of the body: arguments of a call are such a text in chat."""
        try:
            spelled = json.loads(text) if text.startswith("{") else None
        except ValueError:
            return False
        return isinstance(spelled, dict) and spelled in _list_objects(self._body)


def _list_objects(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_objects(child)


def _starts(path: Path, place: Path) -> bool:
    return path[: len(place)] == place


def _is_precise(change: Change, whole: frozenset[Path]) -> bool:
    """Whether a change explains new values: that of a whole container does not, unless all of it is emulated."""
    return (change.after or change.before) not in whole or change.action == "emulated"


def find_holes(
    before: JsonObject,
    after: JsonObject,
    changes: Sequence[Change],
    unmap: Callable[[Path], Path] = lambda path: path,
    *,
    exempt: frozenset[str] = frozenset(),
    by_path: bool = False,
    asked: frozenset[str] = frozenset(),
) -> list[str]:
    """Sentences about each hole. Values under a key in `exempt` may differ; `by_path` is the stricter comparison.

    `asked` are parameters of the request to which a reply is held: a loss at such a path says that the answer does not
    keep to it. A response that repeats the parameter still has the key.
    """
    arrived = {unmap(path): value for path, value in leaves(after)}
    old, new = Values(before), Values(after)
    whole = WHOLE - {("tools",)} if by_path else WHOLE  # a response repeats the tools of the request
    holes = []
    for path, value in leaves(before):
        if _is_negligible(path, value, exempt, by_path) or arrived.get(path) == value:
            continue
        about = [change for change in changes if change.before and _is_about(change.before, path)]
        if by_path:  # a value that replaces another one is not the other one
            about += [change for change in changes if change.after and _starts(path, change.after)]
        is_explained = any((change.before or change.after) not in whole or change.weight == "loss" for change in about)
        if not is_explained and ((by_path and not about) or not new.have(value)):
            holes.append(f"{format_path(path)} = {value!r} was lost in silence")
    for path, value in leaves(after):
        if _is_negligible(path, value, exempt, by_path) or lookup(before, unmap(path)) == value:
            continue
        about = [change for change in changes if change.after and _is_about(change.after, path)]
        about += [change for change in changes if change.before and _starts(unmap(path), change.before)]
        is_listed = any(change.action == "filled" and is_named(path, change.reason) for change in changes)
        is_explained = is_listed or any(_is_precise(change, whole) for change in about)
        if not is_explained and ((by_path and not about) or not (old.have(value) or old.have_parts_of(value))):
            holes.append(f"{format_path(path)} = {value!r} appeared in silence")
    judged = [change for change in changes if exempt.isdisjoint(map(str, (change.before or change.after)[:1]))]
    judged = [change for change in judged if not change.before or change.before[0] not in asked]
    return [*holes, *_list_false_changes(before, after, judged)]


def map_positions(before: JsonObject, after: JsonObject, changes: Sequence[Change]) -> Callable[[Path], Path]:
    """What finds the place in `before` of a path in `after`: items behind those that were dropped have moved up."""
    dropped: dict[Path, list[int]] = defaultdict(list)
    for place in sorted(
        {change.before for change in changes if change.action == "dropped" and not change.after}, key=len
    ):
        if place and isinstance(place[-1], int):
            dropped[place[:-1]].append(place[-1])
    for above, positions in list(dropped.items()):
        lists = lookup(before, above), lookup(after, above)
        if not all(isinstance(one, list) for one in lists) or len(lists[0]) - len(positions) != len(lists[1]):
            del dropped[above]

    def unmap(path: Path) -> Path:
        made: Path = ()
        for part in path:
            if isinstance(part, int):
                for position in sorted(dropped.get(made, ())):
                    part += position <= part
            made = (*made, part)
        return made

    return unmap


def _is_about(place: Path, path: Path) -> bool:
    """Whether a change at `place` is about `path`; in an event of a stream, the same keys have other positions."""
    if _starts(path, place):
        return True
    if place[:1] == ("output",) and len(place) > 1 and ("choices" in path or path[:1] == ("content",)):
        return True  # a choice, or a block, had become an item before it was dropped
    if path[:1] in (("output",), ("content",), ("stop_sequence",)) and place[:1] == ("choices",) and len(place) > 1:
        return True  # an item, or a block, had become a choice
    if len(place) > 1 and not _BLOCK_KEYS.isdisjoint(path):
        if place[0] in ("choices", "output"):
            return True  # the block had become a choice, or an item
        if place[0] == "content":
            return not isinstance(place[-1], str) or place[-1] in path  # a block, or a key of one
    inner = path[2:] if path[:1] == ("events",) else path[1:] if path[:1] == ("joined",) else None
    if inner is None:
        return False
    names = [part for part in place if isinstance(part, str)]
    return bool(names) and names[-1] in inner


def is_named(path: Path, reason: str) -> bool:
    """Whether the reason of a change names the key: "the provider left out seed, store"."""
    return str(path[0]) in reason.replace(",", "").split()


def is_empty(value: Any) -> bool:
    """Whether a value says nothing: null, or an empty text, list or object."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def _is_negligible(path: Path, value: Any, exempt: frozenset[str], by_path: bool) -> bool:
    keys = [part for part in path if isinstance(part, str)]
    if by_path:
        return is_empty(value) or not exempt.isdisjoint(keys)
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
