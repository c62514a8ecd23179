"""Parse a JSON text with thousands of values in parts, so that other threads run in between.

orjson makes all values of a text in one call, which takes 10 ms for 60,000 of them. Whoever has the time for it, as the
process that judges large requests, finds the arrays and objects that have many, and the commas at which they are cut:

    the text             {"a": [1, 2, 3, 4, 5], "b": 6}
    is parsed as         {"a": [], "b": 6}      without what is inside of the long values
    then its parts are   [1, 2]  [3, 4]  [5]    each of which is added to the value that was left empty

A long value may be inside a part of another one: the outer one is parsed first. What is in no long value, or in a part
of one but in no longer one inside, are a few thousand values at most, however deep the text is. So no call takes long.

To find the long values takes ten times as long as to parse the text. They are right for this text alone, if it is valid
JSON without equal keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

__all__ = ["PART", "LongValue", "find_long_values", "parse_in_parts"]

PART = 2_000
"""Values of a part; to parse them takes a third of a millisecond."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{},]', re.DOTALL)
_BYTES = 64  # of a string that count as one value more


class LongValue(NamedTuple):
    """An array or object with many values."""

    path: Sequence[str | int]
    """Where it is in the value of the whole text."""

    marks: Sequence[int]
    """Where each of its parts begins in the text, and last, what is behind its closing bracket."""


def find_long_values(text: bytes, part: int) -> list[LongValue]:
    """The long values of a text that is valid JSON, the outer ones before those that are inside of them. `part` is the
    size of a part: when it has so many values, it ends with the next comma."""
    found: list[LongValue] = []
    holders = [_Holder(0, False)]
    for token in _TOKEN.finditer(text):
        mark, holder = token[0], holders[-1]
        if mark in b"[{":
            holders.append(_Holder(token.end(), mark == b"{"))
        elif mark in b"]}":
            del holders[-1]
            if holder.marks or holder.weight > part:
                path = tuple(outer.place for outer in holders[1:])
                found.append(LongValue(path, (holder.start, *holder.marks, token.end())))
                holder.weight = 0
            holders[-1].weight += holder.weight + 1
        elif mark == b",":
            holder.end_member(token.end(), part)
        else:
            holder.add_string(mark)
    return sorted(found, key=lambda one: one.marks[0])


@dataclass(slots=True)
class _Holder:
    """An array or object that has begun in the text."""

    start: int
    is_object: bool
    marks: list[int] = field(default_factory=list)
    weight: int = 0  # of its last part, as long as it is not cut
    position: int = 0  # of its last member
    key: bytes | None = None  # of the last member of an object

    @property
    def place(self) -> str | int:
        """Where its last member is in it."""
        return self.position if self.key is None else str(orjson.loads(self.key))

    def add_string(self, text: bytes) -> None:
        """Count a string, which may be the key of a member."""
        if self.is_object and self.key is None:
            self.key = text
        self.weight += 1 + len(text) // _BYTES

    def end_member(self, following: int, part: int) -> None:
        """A comma was read; `following` is behind it, where a part of at least `part` values ends."""
        self.weight += 1
        if self.weight > part:
            self.marks.append(following)
            self.weight = 0
        self.position += 1
        self.key = None


def parse_in_parts(text: bytes, long_values: Sequence[LongValue], parse: Callable[[bytes], Any] = orjson.loads) -> Any:
    """As `parse` of the text, of which these are the long values. Raises JSONDecodeError."""
    value = parse(_leave_empty(text, 0, len(text), long_values))
    for number, (path, marks) in enumerate(long_values, 1):
        holder = value
        for place in path:
            holder = holder[place]
        for start, following in pairwise(marks):
            inside = _leave_empty(text, start, following - 1, long_values[number:])
            if type(holder) is dict:
                holder.update(parse(b"{%b}" % inside))
            else:
                holder.extend(parse(b"[%b]" % inside))
    return value


def _leave_empty(text: bytes, start: int, stop: int, long_values: Iterable[LongValue]) -> bytes:
    """A part of the text, without what is inside of long values."""
    pieces = []
    for _, marks in long_values:
        if start <= marks[0] < stop:
            pieces.append(text[start : marks[0]])
            start = marks[-1] - 1
    return b"".join((*pieces, text[start:stop]))
