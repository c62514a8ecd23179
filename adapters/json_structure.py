"""Looks at JSON text without parsing it: how many values it has, and what is outside its strings.

Parsing takes up to 200 ns and 64 bytes for each object, array and string, so 32 MB of empty arrays would block the
event loop for seconds and fill gigabytes. Here every pass is one C call over the bytes that stops at its limit.
"""

from __future__ import annotations

__all__ = ["VALUE_LIMIT", "count_mark", "exceeds_values", "get_outline", "has_long_number"]

VALUE_LIMIT = 100_000
"""The default limit on the values of a request."""

_COMMAS = 4  # that count as one value: arrays of numbers cost less than other values, but not nothing
_RARE = 32  # occurrences that are found one by one
_LONG_NUMBER = b"0" * 19  # the digits of 2**63
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def exceeds_values(text: bytes, most: int) -> bool:
    """Whether JSON text has more than `most` values: objects, arrays, strings and keys; four commas count as one too.

    Marks inside strings are left out of the count only if that decides, because most texts have few.
    """
    if len(text) <= most or not _exceeds(text, most):
        return False
    text = _remove_escapes(text)
    return count_mark(text, b'"', 2 * most + 2) > 2 * most + 1 or _exceeds(_remove_strings(text), most)


def _exceeds(text: bytes, most: int) -> bool:
    left = most
    for mark, weight in ((b"{", 1), (b"[", 1), (b'"', 2), (b",", _COMMAS)):
        left -= count_mark(text, mark, weight * (left + 1)) // weight
        if left < 0:
            return True
    return False


def count_mark(text: bytes, mark: bytes, most: int) -> int:
    """How often a byte occurs in the text, at most `most`. `replace` finds rare bytes much faster than `count`."""
    at = text.find(mark)
    for found in range(min(_RARE, most)):
        if at < 0:
            return found
        at = text.find(mark, at + 1)
    return len(text) - len(text.replace(mark, b"", most))


def get_outline(text: bytes) -> bytes:
    """The text with each string reduced to its quotes. If it is not valid JSON, this holds for what precedes the
    error."""
    return _remove_strings(_remove_escapes(text))


def _remove_escapes(text: bytes) -> bytes:
    """The text without its escaped backslashes and quotes."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text


def _remove_strings(text: bytes) -> bytes:
    return b'""'.join(text.split(b'"')[::2])


def has_long_number(outline: bytes) -> bool:
    """Whether an outline has a number that may not fit in 64 bits: one with 19 digits in a row."""
    return _LONG_NUMBER in outline.translate(_DIGITS)
