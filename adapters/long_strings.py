"""Parse and write JSON texts of megabytes without one long call into C, during which no other thread could run.

orjson takes 40 ms for 30 MB, most of it for new memory: it copies the text, and then the string in it. Such a text
consists of one string or a few, as images do. So each long string is cut out, decoded in slices, and put back:

    the text       {"a": "....................", "b": 1}
    is parsed as   {"a": "d41d8cd98f00b204", "b": 1}      a mark that no text has, between the same two quotes
    the string     orjson parses each slice of it as a string of its own

This needs no look at what is a string. If the two quotes are not those of one string, the text with the mark is not
valid, or no value in it is the mark; and what is between two quotes, and cannot be cut into slices, is not valid as a
slice. In each of these cases, and for a text that is not valid, orjson parses the whole text as it is.

The text with the marks has the same outside of its strings as the whole one, so whoever counts values or looks for long
numbers takes it instead, and saves several passes over megabytes.

To write a value is the same the other way round. orjson takes even longer for that if a string is not ASCII, because
it also keeps the string's UTF-8. The memory for the text is there from the beginning: to grow may mean to copy all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any
from uuid import uuid4

import orjson

from .joined_strings import join_strings
from .json_structure import find_quote, find_quote_before
from .long_values import LongValue, parse_in_parts

__all__ = ["LARGE", "CutText", "cut_long_strings", "parse_json", "shorten", "write_json"]

LARGE = 1024 * 1024
"""Bytes of a text that may have strings which are worked on in slices."""

_LONG = 1024 * 1024  # bytes of a string
_SLICE = 64 * 1024
_ESCAPE = len(r"\ud83d\ude00")  # bytes of the longest one
_INSIDE = 0b1000_0000  # the two highest bits of a byte of UTF-8 that is not the first one of its character


def parse_json(text: bytes, long_values: Sequence[LongValue] = ()) -> Any:
    """As `orjson.loads`. `long_values` are those of what `shorten` makes of the text. Raises JSONDecodeError."""
    if (cut := cut_long_strings(text)) is not None:
        try:
            return cut.parse(long_values)
        except orjson.JSONDecodeError:
            return orjson.loads(text)  # a span is not what it looks like
    return parse_in_parts(text, long_values) if long_values else orjson.loads(text)


def shorten(text: bytes) -> bytes:
    """The text with a mark in place of each long string, all of the same size."""
    return text if (cut := cut_long_strings(text)) is None else cut.short


class CutText:
    """A text with a mark in place of each span, `short`. If it can be parsed, each span is inside a string, and what is
    outside of the strings is the same in both."""

    def __init__(self, text: bytes, spans: Iterable[tuple[int, int]]) -> None:
        self._text = text
        self._spans = {uuid4().hex: span for span in spans}
        parts, at = [], 0
        for mark, (start, end) in self._spans.items():
            parts += [text[at:start], mark.encode()]
            at = end
        self.short = b"".join((*parts, text[at:]))

    def parse(self, long_values: Sequence[LongValue] = ()) -> Any:
        """As `orjson.loads` of the text. `long_values` are those of `short`. Raises JSONDecodeError, also if a span is
        no string."""
        value = parse_in_parts(self.short, long_values)
        strings = {mark: _decode(self._text, *span) for mark, span in self._spans.items()}
        _put_back(value, strings)
        if strings:
            raise orjson.JSONDecodeError("a span is not the value of a string", "", 0)
        return value


def cut_long_strings(text: bytes) -> CutText | None:
    """Cut out what looks like long strings; None if nothing does."""
    spans = [*_find_long_strings(text)] if len(text) > LARGE else []
    return CutText(text, spans) if spans else None


def write_json(value: Any) -> bytes:
    """As `orjson.dumps`, for a value of strings, numbers, objects and arrays. Raises JSONEncodeError."""
    strings: dict[str, str] = {}
    pieces = orjson.dumps(_mark_long_strings(value, strings))
    written, at = BytesIO(bytes(len(pieces) + sum(map(len, strings.values())))), 0
    for mark, string in strings.items():
        place = pieces.index(mark.encode())
        written.write(pieces[at:place])
        for start in range(0, len(string), _SLICE):
            written.write(orjson.dumps(string[start : start + _SLICE])[1:-1])
        at = place + len(mark)
    written.write(pieces[at:])
    written.truncate()
    return written.getvalue()


def _mark_long_strings(value: Any, strings: dict[str, str]) -> Any:
    """A copy of a value, as far as it has long strings, with a mark in place of each. They are added to `strings`, in
    the order in which they are written."""
    if type(value) is str:
        if len(value) <= _LONG:
            return value
        strings[mark := uuid4().hex] = value
        return mark
    if type(value) is not dict and not isinstance(value, list):
        return value
    known = len(strings)
    if type(value) is dict:
        copy: Any = {key: _mark_long_strings(one, strings) for key, one in value.items()}
    else:
        copy = [_mark_long_strings(one, strings) for one in value]
    return copy if len(strings) > known else value


def _find_long_strings(text: bytes) -> Iterator[tuple[int, int]]:
    """Where there are many bytes between two quotes."""
    closing = -1
    while (probe := closing + _LONG) < len(text):
        opening = find_quote_before(text, probe, closing + 1)
        closing = find_quote(text, probe)
        if closing < 0:
            return
        if opening >= 0 and closing - opening > _LONG:
            yield opening + 1, closing


def _decode(text: bytes, start: int, end: int) -> str:
    parts = []
    while start < end:
        stop = min(start + _SLICE, end)
        while stop < end and text[stop] & 0b1100_0000 == _INSIDE and stop > start + 1:
            stop -= 1
        part, start = _decode_slice(text, start, stop)
        parts.append(part)
    return join_strings(parts)


def _decode_slice(text: bytes, start: int, stop: int) -> tuple[str, int]:
    """The characters of a slice, and where it ends: before `stop` if an escape crosses that. Raises JSONDecodeError."""
    first = max(start + 1, stop - _ESCAPE)
    while True:
        try:
            return orjson.loads(b'"%b"' % text[start:stop]), stop
        except orjson.JSONDecodeError:
            escape = text.rfind(b"\\", first, stop)
            if escape < 0:
                raise
            stop = escape


def _put_back(value: Any, strings: dict[str, str]) -> None:
    """Replace the marks in a value by their strings, which are removed from `strings`."""
    holders = [value]
    while holders and strings:
        holder = holders.pop()
        members = holder.items() if type(holder) is dict else enumerate(holder) if type(holder) is list else ()
        for place, one in members:
            if type(one) is not str:
                holders.append(one)
            elif one in strings:
                holder[place] = strings.pop(one)
