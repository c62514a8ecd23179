"""Parse JSON bodies: strictly from clients, so that no other server reads a body differently; leniently from upstreams.

orjson parses them. It accepts duplicate keys, integers beyond 64 bits and 1024 levels, so this module finds these:

- depth: a walk over the values, skipped if the text has too few brackets to be deep;
- the rest: if orjson writes the parsed value as the same text but for spaces, it has neither. So do most clients. A
  text that escapes other characters, or is large, has as many colons outside its strings as keys, and no long number.
  The standard library parses only what is left once more, with hooks that see every key and every integer.

The work is bounded: a text with too many values is refused before it is parsed, and the place of an error is looked
for only in a text of moderate size.

Parsing every text twice would be simpler, and three times slower for compact ones. From `bench/json_bodies.py`, in
microseconds of processor time with Python 3.11:

    body      orjson alone   read_object, compact   read_object, spaced   always parsed twice
    1 KB                 2                      4                    15                    13
    4 KB                 5                     10                    35                    29
    200 KB             127                    440                  1109                   730
    1 MB               685                   2221                  5655                  4040
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from .call import JsonObject
from .duplicates import describe_place, duplicate_key_fault
from .faults import Fault
from .json_structure import (
    VALUE_LIMIT,
    count_mark,
    exceeds_values,
    get_outline,
    has_long_number,
    has_many_escapes,
    may_exceed_values,
)
from .long_strings import cut_long_strings, parse_json, shorten
from .long_values import PART, LongValue, find_long_values
from .paths import Path, format_path

__all__ = [
    "BOM",
    "MAX_DEPTH",
    "SYNTAX_CODES",
    "find_parts",
    "has_big_integer",
    "is_too_deep",
    "may_be_deeper",
    "read_any",
    "read_object",
    "read_plain_object",
    "read_right_object",
]

MAX_DEPTH = 128
SYNTAX_CODES = frozenset(
    {
        "empty_body",
        "invalid_json",
        "duplicate_key",
        "json_too_deep",
        "number_out_of_range",
        "invalid_unicode",
        "invalid_utf8",
    }
)
"""The codes of faults for a text that is not valid JSON, or that this module refuses."""

BOM = b"\xef\xbb\xbf"
_SMALL = 16 * 1024  # bytes; to find a rare byte among them takes less than a microsecond
_LARGE = 4 * 1024 * 1024  # bytes of a text that is not written to be compared: that would take a long call into C
_SPACES = b" \t\r\n"
_SHOWN = 40
_SEARCHED = 10_000  # values of a text in which the place of an error is looked for
_SEARCHED_SIZE = 1_000_000  # its bytes
_INT64 = -(2**63)
_UINT64 = 2**64 - 1
_FEWEST_DIGITS = 19
_INTEGER = re.compile(rb'[\[\]{}":\s]*+(-?\d{%d,}+)(?![.eE])' % _FEWEST_DIGITS)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_DEPTH_WORDS = re.compile("depth|recursion", re.IGNORECASE)
_NOT_JSON = re.compile(r"NaN|Infinity|undefined|None\b|True\b|False\b")


def read_object(raw: bytes, most: int = VALUE_LIMIT) -> JsonObject:
    """Parse a client's body, of at most `most` values (`json_structure.exceeds_values`). A UTF-8 byte order mark is
    skipped.

    Raises Fault `too_large`, or `invalid_request` with one of SYNTAX_CODES, or `invalid_type` for no object.
    Lines, columns (in characters) and bytes in its message count from 1, 1 and 0; `path` is set if the fault has one.
    """
    text = raw.removeprefix(BOM)
    skipped = len(raw) - len(text)
    try:
        value, short = _parse(text, most)
    except orjson.JSONDecodeError as error:
        raise _explain(error, text, skipped) from None
    if type(value) is not dict:
        raise _fault("invalid_type", f"The body is not valid: expected object, got {_json_type(value)}")
    if is_too_deep(value, short):
        raise _too_deep()
    if len(text) > _LARGE or _is_spelled_differently(text, orjson.dumps(value)):
        _check_spelling(text, short, value, skipped)
    return cast(JsonObject, value)


def read_plain_object(text: bytes, most: int | None) -> tuple[JsonObject, bytes] | None:
    """As `read_object`, with the text that orjson writes for the value; None if `read_object` refuses the body, or has
    to parse it once more. To say why takes much longer than to parse a body. `most` is None if the caller knows that
    the body has few values."""
    try:
        value, short = _parse(text, most)
    except (orjson.JSONDecodeError, Fault):
        return None
    if type(value) is not dict or is_too_deep(value, short):
        return None
    written = orjson.dumps(value)
    if _is_spelled_differently(text, written):
        outline = get_outline(short)
        if _has_duplicates(outline, value) or has_long_number(outline):
            return None
    return value, written


def read_right_object(raw: bytes, long_values: Sequence[LongValue]) -> JsonObject:
    """As `read_object`, for a body that it is known to accept: nothing is checked. `long_values` are what
    `find_parts` returns for it, or none of them."""
    return cast(JsonObject, parse_json(raw.removeprefix(BOM), long_values))


def find_parts(raw: bytes) -> list[LongValue]:
    """The long values of a body that `read_object` accepts, by which `read_right_object` parses it in parts: none if it
    has few values. They are tried: it would be parsed to another value if one of them was wrong."""
    text = raw.removeprefix(BOM)
    short = shorten(text)
    if not may_exceed_values(short, 2 * PART):
        return []
    found = find_long_values(short, PART)
    return found if parse_json(text, found) == parse_json(text) else []


def _parse(text: bytes, most: int | None) -> tuple[Any, bytes]:
    """Parse a text. Return also what has the same outside of its strings, but none of its long strings. Raises
    JSONDecodeError, or Fault for too many values."""
    if (cut := cut_long_strings(text)) is not None and not _exceeds(text, cut.short, most):
        try:
            return cut.parse(), cut.short
        except orjson.JSONDecodeError:
            pass  # not what it looks like
    if most is not None and len(text) > most and exceeds_values(text, most):
        raise _too_deep() if _begins_deep(text) else _too_many_values(most)
    return orjson.loads(text), text


def _exceeds(text: bytes, short: bytes, most: int | None) -> bool:
    """Whether a text has too many values, unless something in `short` is not what it looks like."""
    return most is not None and (has_many_escapes(text, most) or exceeds_values(short, most))


def read_any(raw: bytes) -> Any:
    """Parse an upstream's JSON text. Of duplicate keys the last one counts. Raises ValueError, also for more than
    MAX_DEPTH levels."""
    text = raw.removeprefix(BOM)
    value = parse_json(text)
    if is_too_deep(value, text):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def may_be_deeper(text: bytes, levels: int) -> bool:
    """Whether JSON text has enough brackets for more than so many levels."""
    if len(text) <= _SMALL:
        return 2 * len(text) - len(text.replace(b"{", b"")) - len(text.replace(b"[", b"")) > levels
    return count_mark(text, b"{", levels + 1) + count_mark(text, b"[", levels + 1) > levels


def is_too_deep(value: Any, text: bytes) -> bool:
    """Whether the value has more than MAX_DEPTH levels; walked only if the text has brackets for that many."""
    if not may_be_deeper(text, MAX_DEPTH):
        return False
    level: list[Any] = [value]
    if type(value) is not dict and type(value) is not list:
        return False
    for _ in range(MAX_DEPTH):
        level = _list_holders(level)
        if not level:
            return False
    return True


def _list_holders(level: list[Any]) -> list[Any]:
    """The objects and arrays directly in these objects and arrays."""
    return [
        child
        for parent in level
        for child in (parent.values() if type(parent) is dict else parent)
        if type(child) is dict or type(child) is list
    ]


@dataclass(eq=False, slots=True)
class _BadNumber:
    """The placeholder in a parsed value for a number that is out of range."""

    digits: str


def _is_spelled_differently(text: bytes, written: bytes) -> bool:
    return written != text and written.translate(None, _SPACES) != text.translate(None, _SPACES)


def _check_spelling(text: bytes, short: bytes, value: JsonObject, skipped: int) -> None:
    """Check a text that orjson writes differently, or that is large; `short` has the same outside of its strings.
    Raises Fault for a duplicate key or a number out of range."""
    outline = get_outline(short)
    has_duplicates = _has_duplicates(outline, value)
    if not has_duplicates and not has_long_number(outline):
        return
    if _is_searchable(text):
        _check_exactly(text.decode(), skipped)
    elif has_duplicates:
        raise _fault("duplicate_key", "An object in the body has the same key more than once; leave one out")
    elif _has_big_integer(outline):
        raise _fault("number_out_of_range", "A number in the body is out of range: it does not fit in 64 bits")


def _has_duplicates(outline: bytes, value: JsonObject) -> bool:
    return outline.count(b":") != _count_keys(value)


def _count_keys(value: JsonObject) -> int:
    count = 0
    level: list[Any] = [value]
    while level:
        count += sum(len(one) for one in level if type(one) is dict)
        level = _list_holders(level)
    return count


def _is_searchable(text: bytes) -> bool:
    """Whether a text is so small that the place of an error can be looked for."""
    return len(text) <= _SEARCHED_SIZE and not exceeds_values(text, _SEARCHED)


def has_big_integer(text: bytes) -> bool:
    """Whether a JSON text has an integer that does not fit in 64 bits, of which orjson makes a float."""
    return has_long_number(text) and _has_big_integer(get_outline(text))


def _has_big_integer(outline: bytes) -> bool:
    """As `has_big_integer`, for an outline. Between two commas is at most one number."""
    parts = [part for part in outline.split(b",") if len(part) >= _FEWEST_DIGITS]
    numbers = (number[1] for number in map(_INTEGER.match, parts) if number is not None)
    return any(len(digits) > 20 or not _INT64 <= int(digits) <= _UINT64 for digits in numbers)


def _check_exactly(text: str, skipped: int) -> None:
    """Parse the text once more, exactly. Raises Fault for a duplicate key or a number out of range."""
    bad_numbers: list[_BadNumber] = []

    def bad_number(digits: str) -> _BadNumber:
        bad_numbers.append(_BadNumber(digits))
        return bad_numbers[-1]

    def members(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _DuplicateKey
        return found

    def integer(digits: str) -> Any:
        number = int(digits) if len(digits) <= 20 else _UINT64 + 1
        return number if _INT64 <= number <= _UINT64 else bad_number(digits)

    def decimal(digits: str) -> Any:
        number = float(digits)
        return number if abs(number) != float("inf") else bad_number(digits)

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer, parse_float=decimal)
    except _DuplicateKey:
        raise duplicate_key_fault(text, skipped) from None
    if bad_numbers:
        path = _find_path(bad_numbers[-1], value)
        where = f" at {_shorten(format_path(path))}" if path else ""
        shown = _shorten(bad_numbers[-1].digits)
        text = f"The number {shown}{where} is out of range: it does not fit in 64 bits"
        raise _fault("number_out_of_range", text, path)


class _DuplicateKey(Exception):
    """An object has a duplicate key."""


def _find_path(wanted: object, value: Any) -> Path:
    """Return the path of this object, by identity, in a parsed value; empty if it is not there."""
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, found = stack.pop()
        if found is wanted:
            return path
        if isinstance(found, dict):
            stack += [((*path, key), child) for key, child in found.items()]
        elif isinstance(found, list):
            stack += [((*path, index), child) for index, child in enumerate(found)]
    return ()


def _explain(error: orjson.JSONDecodeError, text: bytes, skipped: int) -> Fault:
    """Return the fault for a text that orjson refused. `skipped` is the number of bytes before the text."""
    if not text.strip(b" \t\r\n"):
        return _fault("empty_body", "The body is empty; expected a JSON object")
    if text.startswith(_UTF16_MARKS) or b"\0" in text[:4]:
        return _fault(
            "invalid_utf8", f"The body must be UTF-8; byte {skipped} and those after it look like UTF-16 or UTF-32"
        )
    try:
        decoded = text.decode()
    except UnicodeDecodeError as bad:
        found = text[bad.start]
        return _fault(
            "invalid_utf8", f"The body is not valid UTF-8: unexpected 0x{found:02x} at byte {skipped + bad.start}"
        )
    return _explain_position(error, decoded, skipped)


def _explain_position(error: orjson.JSONDecodeError, decoded: str, skipped: int) -> Fault:
    place = describe_place(decoded, error.pos, skipped)
    reason = error.msg.split(": line ")[0]
    if _DEPTH_WORDS.search(reason):
        return _too_deep()
    if "surrogate" in reason:
        return _fault("invalid_unicode", f"A string has half of a surrogate pair, which is no character, at {place}")
    if "infinity" in reason:
        return _out_of_range(decoded, error.pos, skipped)
    if foreign := _NOT_JSON.match(decoded, error.pos):
        reason = f"{foreign[0]} is not a JSON value"
    return _fault("invalid_json", f"The body is not valid JSON: {reason}, at {place}")


def _out_of_range(decoded: str, position: int, skipped: int) -> Fault:
    try:
        if _is_searchable(decoded.encode()):
            _check_exactly(decoded, skipped)
    except Fault as fault:
        if fault.code == "number_out_of_range":
            return fault
    except (ValueError, RecursionError):
        pass  # the text has another error too: report the number by its position
    number = _shorten(re.split(r"[\s,\]}]", decoded[position : position + _SHOWN + 1], maxsplit=1)[0])
    place = describe_place(decoded, position, skipped)
    return _fault("number_out_of_range", f"The number {number} at {place} is out of range: it does not fit in 64 bits")


def _begins_deep(text: bytes) -> bool:
    """Whether the beginning of a text has more levels than any parser allows."""
    try:
        orjson.loads(text[:_SEARCHED])
    except orjson.JSONDecodeError as error:
        return _DEPTH_WORDS.search(error.msg) is not None
    return False


def _too_many_values(most: int) -> Fault:
    text = f"The body has more than {most} values, counted as the setting server.value_limit describes; send less"
    return Fault("too_large", text, code="too_many_values")


def _too_deep() -> Fault:
    return _fault("json_too_deep", f"The body is nested too deeply: the limit is {MAX_DEPTH} levels")


def _fault(code: str, message: str, path: Path = ()) -> Fault:
    return Fault("invalid_request", message, path, code=code)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _json_type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names[type(value)]
