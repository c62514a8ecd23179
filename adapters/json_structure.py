"""Looks at JSON text without parsing it: how many values it has, and what is outside its strings.

Parsing takes up to 200 ns and 64 bytes for each object, array and string, so 32 MB of empty arrays would block the
event loop for seconds and fill gigabytes. Here every pass is a few C calls over the bytes, or stops at its limit.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "REPLY_COMMAS",
    "REPLY_VALUES",
    "VALUE_LIMIT",
    "count_mark",
    "exceeds_values",
    "find_byte",
    "find_quote",
    "find_quote_before",
    "get_outline",
    "has_long_number",
    "has_many_escapes",
    "may_exceed_values",
]

VALUE_LIMIT = 60_000
"""The default limit on the values of a request. It admits 10,000 short messages, and 300,000 tokens as numbers."""

REPLY_VALUES, REPLY_COMMAS = 1_000_000, 64
"""The limit on the values of a provider's reply, and of an event, and how many commas count as one of them: it admits
the log probabilities of 8,000 tokens, and every vector that fits into the limit on its bytes."""

_COMMAS = 6  # that count as one value: arrays of numbers cost less than other values, but not nothing
_ESCAPES = 32
_SHORTEST = 2  # bytes of a value, at least: `[[],[]]` has seven, and three and a quarter values
_SMALL = 16 * 1024
_RARE = 32  # occurrences that are found one by one
_SLICE = 64 * 1024
_SCANNED = 2 * 1024 * 1024  # bytes that are looked through in a tenth of a millisecond
_MARKS = (b"{", b"[", b'"', b",")
_LONG_NUMBER = b"0" * 19  # the digits of 2**63
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def exceeds_values(text: bytes, most: int, commas: int = _COMMAS) -> bool:
    """Whether JSON text has more than `most` values: objects, arrays, strings and keys. So many commas, six by default,
    count as one too.

    A text with more than 32 backslashes for each of them has too many as well: an escaped character costs ten times as
    much as another. Marks inside strings are left out of the count only if that decides, because most texts have few.
    """
    if len(text) <= _SHORTEST * most:
        return False
    if has_many_escapes(text, most):
        return True
    if not _may_have_values(text, most, commas):
        return False
    counts = [0] * len(_MARKS)
    for part in _outline_slices(text):
        counts = [count + len(part) - len(part.replace(mark, b"")) for count, mark in zip(counts, _MARKS, strict=True)]
        if sum(count // weight for count, weight in zip(counts, (1, 1, 2, commas), strict=True)) > most:
            return True
    return False


def may_exceed_values(text: bytes, most: int, commas: int = _COMMAS) -> bool:
    """Whether JSON text would have more than `most` values if none of its marks were inside strings, or has too many
    backslashes for them. This is found out in much less time than `exceeds_values` takes."""
    return has_many_escapes(text, most) or _may_have_values(text, most, commas)


def has_many_escapes(text: bytes, most: int) -> bool:
    """Whether JSON text has more backslashes than `most` values may have."""
    escapes = _ESCAPES * most
    return len(text) > escapes and count_mark(text, b"\\", escapes + 1) > escapes


def _may_have_values(text: bytes, most: int, commas: int) -> bool:
    left = most
    for mark, weight in zip(_MARKS, (1, 1, 2, commas), strict=True):
        left -= count_mark(text, mark, weight * (left + 1)) // weight
        if left < 0:
            return True
    return False


def count_mark(text: bytes, mark: bytes, most: int) -> int:
    """How often a byte occurs in the text, at most `most`. `replace` finds rare bytes much faster than `count`."""
    if len(text) <= _SMALL:
        return min(len(text) - len(text.replace(mark, b"")), most)
    at = find_byte(text, mark)
    for found in range(min(_RARE, most)):
        if at < 0:
            return found
        at = find_byte(text, mark, at + 1)
    count = 0
    for start in range(0, len(text), _SLICE):
        part = text[start : start + _SLICE]
        count += len(part) - len(part.replace(mark, b""))
        if count >= most:
            return most
    return count


def find_byte(text: bytes, mark: bytes, start: int = 0) -> int:
    """As `text.find` for one byte. Other threads run between two slices."""
    for begin in range(start, len(text), _SCANNED):
        if (at := text.find(mark, begin, begin + _SCANNED)) >= 0:
            return at
    return -1


def get_outline(text: bytes) -> bytes:
    """The text with each string reduced to its quotes. If it is not valid JSON, this holds for what precedes the
    error."""
    return b"".join(_outline_slices(text))


def _outline_slices(text: bytes) -> Iterator[bytes]:
    """The outline in slices: one call into C over a large text would keep other threads waiting."""
    inside = 0
    for part in _blank_slices(text, b""):
        pieces = part.split(b'"')
        outside = b'""'.join(pieces[inside::2])
        yield b'""' + outside if inside and len(pieces) > 1 else outside
        inside ^= (len(pieces) - 1) % 2


def find_quote(text: bytes, start: int) -> int:
    """Where the next quote is that is not escaped, from `start` on; -1 if there is none."""
    start = find_byte(text, b'"', start)
    at = _leave_escape(text, start)
    if at == start:
        return at
    for part in _blank_slices(text, b"..", at):
        if (found := part.find(b'"')) >= 0:
            return at + found
        at += len(part)
    return -1


def find_quote_before(text: bytes, stop: int, first: int) -> int:
    """Where the last quote is that is not escaped, before `stop`, but not before `first`; -1 if there is none."""
    stop = text.rfind(b'"', first, stop) + 1
    while stop > first:
        if _leave_escape(text, stop - 1) == stop - 1:
            return stop - 1
        start = max(first, _leave_escape(text, max(0, stop - _SLICE)))
        part = b"".join(_blank_slices(text[start:stop], b".."))
        if (found := part.rfind(b'"')) >= 0:
            return start + found
        stop = text.rfind(b'"', first, start) + 1
    return -1


def _leave_escape(text: bytes, at: int) -> int:
    """The same position, or the start of the backslashes before it: it may be inside of an escape."""
    while at > 0 and text[at - 1 : at] == b"\\":
        begin = max(0, at - _SLICE)
        at = begin + len(text[begin:at].rstrip(b"\\"))
    return at


def _blank_slices(text: bytes, blank: bytes, start: int = 0) -> Iterator[bytes]:
    """A text in slices, with these bytes in place of each escaped quote and backslash."""
    while start < len(text):
        part = text[start : start + _SLICE]
        if start + len(part) < len(text):
            part = part.rstrip(b"\\") or part  # a pair of them stays together: the size of a slice is even
        start += len(part)
        yield part.replace(b"\\\\", blank).replace(b'\\"', blank) if b"\\" in part else part


def has_long_number(outline: bytes) -> bool:
    """Whether an outline has a number that may not fit in 64 bits: one with 19 digits in a row."""
    return _LONG_NUMBER in outline.translate(_DIGITS)
