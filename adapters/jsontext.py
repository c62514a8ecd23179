"""Reading JSON bodies: strictly from clients, so that no two readers can differ about a body; leniently from upstreams.

orjson does the parsing. What it lets through is found with as little looking as possible:

- a compact text that is the same when its value is written again hides nothing;
- depth and integers that became floats: one walk over the values;
- keys written twice: the walk counts keys, `_keys_written` counts them in the text. Equal counts prove that there is
  none. Strings that look like keys can only raise the text's count, and then the standard library decides.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from .call import JsonObject
from .duplicates import duplicate_key, place_of
from .faults import Fault
from .paths import Path, dotted

__all__ = ["BOM", "MAX_DEPTH", "SYNTAX_CODES", "read_any", "read_object"]

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
"""The codes of the faults that say: this is no proper JSON text."""

BOM = b"\xef\xbb\xbf"
_SHOWN = 40
_VAST = "is out of range: it does not fit in 64 bits"
_INT64 = -(2**63)
_UINT64 = 2**64 - 1
_OTHER_SPACES = (b"\n", b"\t", b"\r")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NOT_JSON = re.compile(r"NaN|Infinity|undefined|None\b|True\b|False\b")


def read_object(raw: bytes) -> JsonObject:
    """A client's body. A UTF-8 byte order mark is skipped.

    Raises Fault `invalid_request` with one of SYNTAX_CODES, or `invalid_type` if the body is not an object.
    Lines, columns (in characters) and bytes in its message count from 1, 1 and 0; `path` is set if there is one.
    """
    text = raw.removeprefix(BOM)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _explain(error, text, len(raw) - len(text)) from None
    if type(value) is not dict:
        raise _fault("invalid_type", f"The body is not valid: expected object, got {_type_of(value)}")
    if not _is_plain(value, text):
        keys, vast = _survey(value)
        if vast or keys != _keys_written(text):
            _reread(text.decode(), len(raw) - len(text))
    return value


def _is_plain(value: JsonObject, text: bytes) -> bool:
    """True if writing the value again gives the same text: no key came twice, no integer became a float. Too few
    brackets to be deep is part of it. Clients that write compact JSON, as most do, need no other proof."""
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH and orjson.dumps(value) == text


def read_any(raw: bytes) -> Any:
    """An upstream's JSON text, taken as it comes. Raises ValueError."""
    return orjson.loads(raw.removeprefix(BOM))


def _survey(value: JsonObject) -> tuple[int, bool]:
    """How many keys there are, and whether a float could have been an integer beyond 64 bits. Raises Fault."""
    keys = 0
    vast = False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for parent in level:
            if type(parent) is dict:
                keys += len(parent)
                parent = parent.values()
            for child in parent:
                kind = type(child)
                if kind is str:
                    continue
                if kind is dict or kind is list:
                    below.append(child)
                elif kind is float and not -(2.0**63) < child < 2.0**63:
                    vast = True
        if not below:
            return keys, vast
        level = below
    raise _too_deep()


def _keys_written(text: bytes) -> int:
    """The keys in a JSON text, or a number that differs from the keys of its parsed value.

    A key ends in a quote and a colon. The quotes inside a string follow a backslash and are not counted; if a
    key ends in a backslash that would be wrong: -1. A space before a colon could be a key's: -1. A string that begins
    with a colon is counted, which is too many.
    """
    if b" :" in text or any(space in text and space + b":" in text for space in _OTHER_SPACES):
        return -1
    count = text.count(b'":')
    if b"\\" in text and (inside := text.count(b'\\":')):
        return -1 if b'\\\\":' in text else count - inside
    return count


@dataclass(eq=False, slots=True)
class _Flaw:
    """Takes the place of a number that is out of range in a parsed value."""

    digits: str


def _reread(text: str, skipped: int) -> None:
    """Parse once more, exactly. Raises Fault for a key written twice or a number out of range."""
    flaws: list[_Flaw] = []

    def flaw(digits: str) -> _Flaw:
        flaws.append(_Flaw(digits))
        return flaws[-1]

    def members(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _Twice
        return found

    def integer(digits: str) -> Any:
        number = int(digits) if len(digits) <= 20 else _UINT64 + 1
        return number if _INT64 <= number <= _UINT64 else flaw(digits)

    def decimal(digits: str) -> Any:
        number = float(digits)
        return number if abs(number) != float("inf") else flaw(digits)

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer, parse_float=decimal)
    except _Twice:
        raise duplicate_key(text, skipped) from None
    if flaws:
        path = _path_to(flaws[-1], value)
        where = f" at {_short(dotted(path))}" if path else ""
        shown = _short(flaws[-1].digits)
        text = f"The number {shown}{where} is out of range: it does not fit in 64 bits"
        raise _fault("number_out_of_range", text, path)


class _Twice(Exception):
    """An object has a key twice."""


def _path_to(wanted: object, value: Any) -> Path:
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
    """What is wrong with a text that orjson refused. `skipped` bytes came before it."""
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
    return _refused(error, decoded, skipped)


def _refused(error: orjson.JSONDecodeError, decoded: str, skipped: int) -> Fault:
    place = place_of(decoded, error.pos, skipped)
    reason = error.msg.split(": line ")[0]
    if re.search("depth|recursion", reason, re.IGNORECASE):
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
        _reread(decoded, skipped)
    except Fault as fault:
        if fault.code == "number_out_of_range":
            return fault
    except (ValueError, RecursionError):
        pass  # the text is wrong elsewhere too: the number's place will do
    number = _short(re.split(r"[\s,\]}]", decoded[position : position + _SHOWN + 1], maxsplit=1)[0])
    place = place_of(decoded, position, skipped)
    return _fault("number_out_of_range", f"The number {number} at {place} is out of range: it does not fit in 64 bits")


def _too_deep() -> Fault:
    return _fault("json_too_deep", f"The body is nested too deeply: the limit is {MAX_DEPTH} levels")


def _fault(code: str, message: str, path: Path = ()) -> Fault:
    return Fault("invalid_request", message, path, code=code)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names[type(value)]
