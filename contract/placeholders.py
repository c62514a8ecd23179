"""Placeholders and generated values in a case's text.

`${model}`, `${saved.call_id}`: a string that is only a placeholder becomes the value itself; inside a longer string the
placeholder becomes the value's text.
`{"$times": 33, "item": ...}` in a list: that many items, in which `${n}` counts from 1.
`{"$text": "ab", "times": 1000}`: a long string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .json_types import JsonValue

__all__ = ["MissingValueError", "fill_placeholders"]

_PLACEHOLDER = re.compile(r"\$\{([a-z_]+(?:\.[A-Za-z0-9_-]+)*)\}")


class MissingValueError(LookupError):
    """A placeholder has no value."""


def fill_placeholders(text: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return a copy of that JSON value with its placeholders filled in. Raises MissingValueError."""
    if isinstance(text, str):
        return _fill_string(text, values)
    if isinstance(text, list):
        return [item for entry in text for item in _expand_item(entry, values)]
    if isinstance(text, dict):
        if "$text" in text:
            return str(fill_placeholders(text["$text"], values)) * int(text["times"])
        return {_fill_string(key, values): fill_placeholders(value, values) for key, value in text.items()}
    return text


def _expand_item(entry: JsonValue, values: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    if isinstance(entry, dict) and "$times" in entry:
        for number in range(1, int(entry["$times"]) + 1):
            yield fill_placeholders(entry["item"], {**values, "n": number})
    else:
        yield fill_placeholders(entry, values)


def _fill_string(text: str, values: Mapping[str, JsonValue]) -> JsonValue:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole:
        return _look_up(whole[1], values)
    return _PLACEHOLDER.sub(lambda match: str(_look_up(match[1], values)), text)


def _look_up(name: str, values: Mapping[str, JsonValue]) -> JsonValue:
    found: JsonValue = values
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise MissingValueError(f"no value for ${{{name}}}")
        found = found[part]
    return found
