"""Placeholders and long values in a case's text.

`${model}`, `${saved.call_id}`: a string that is nothing else becomes the value itself, else the value's text.
`{"$times": 33, "item": ...}` in a list: that many items, in which `${n}` counts from 1.
`{"$text": "ab", "times": 1000}`: a long string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Missing", "filled"]

_HOLE = re.compile(r"\$\{([a-z_]+(?:\.[A-Za-z0-9_-]+)*)\}")


class Missing(LookupError):
    """A placeholder for which there is no value."""


def filled(text: Any, values: Mapping[str, Any]) -> Any:
    """A copy of that JSON value with its placeholders filled in. Raises Missing."""
    if isinstance(text, str):
        return _string(text, values)
    if isinstance(text, list):
        return [item for entry in text for item in _items(entry, values)]
    if isinstance(text, dict):
        if "$text" in text:
            return str(filled(text["$text"], values)) * int(text["times"])
        return {_string(key, values): filled(value, values) for key, value in text.items()}
    return text


def _items(entry: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(entry, dict) and "$times" in entry:
        for number in range(1, int(entry["$times"]) + 1):
            yield filled(entry["item"], {**values, "n": number})
    else:
        yield filled(entry, values)


def _string(text: str, values: Mapping[str, Any]) -> Any:
    whole = _HOLE.fullmatch(text)
    if whole:
        return _value(whole[1], values)
    return _HOLE.sub(lambda hole: str(_value(hole[1], values)), text)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise Missing(f"no value for ${{{name}}}")
        found = found[part]
    return found
