"""Validation of each value by itself: pydantic's errors, reworded for people who wrote the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from dragoman.adapters.paths import Path, format_path
from dragoman.adapters.suggestions import find_nearest

from .document import Document, Node, did_you_mean
from .masks import is_secret
from .models import Config
from .values import FROM_FILE

__all__ = ["describe_schema", "schema_at", "validate"]

_UNITS = {"seconds": "a duration such as 30s, 500ms or 2m", "bytes": "a size such as 32MiB or 64kB"}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("minLength", "at least {} character"),
    ("minItems", "at least {} item"),
)
_UNKNOWN = "unexpected_keyword_argument"
"""pydantic's name for the problem of an unknown key."""
_FEW = 12
"""The most keys that a message lists."""
_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}


def validate(document: Document) -> Config | None:
    """The configuration, or None after problems were added to the document.

    A misspelled key is a problem, and counts as the key that was meant from then on, so that it causes no further ones.
    """
    try:
        return Config.from_values(document.root.plain, FROM_FILE)
    except ValidationError as error:
        found = error.errors(include_url=False)
    corrected = [_correct_key(document, details["loc"]) for details in found if details["type"] == _UNKNOWN]
    if any(corrected):
        validate(document)
    else:
        for details in found:
            _add_problem(document, details["loc"], details["type"], details.get("ctx", {}))
    return None


def _correct_key(document: Document, path: Path) -> bool:
    """Report an unknown key that is like a known one, and rename it to that one, unless both are there."""
    owner, nearest = document.mapping(*path[:-1]), find_nearest(str(path[-1]), _known_keys(path[:-1]))
    if not nearest or nearest[0] in owner:
        return False
    document.mask_as((*path[:-1], nearest[0]), owner[str(path[-1])])
    _add_unknown_key(document, path)
    owner[nearest[0]] = owner.pop(str(path[-1]))
    return True


def _known_keys(path: Path) -> list[str]:
    """The keys of the mapping at a path."""
    return sorted(schema_at(path).get("properties", {}))


def _add_problem(document: Document, path: Path, kind: str, context: Mapping[str, Any]) -> None:
    at_key = path[-1:] == ("[key]",)
    path = path[:-1] if at_key else path
    if kind == _UNKNOWN:
        _add_unknown_key(document, path)
    elif kind == "missing":
        owner = format_path(path[:-1]) or "the file"
        message = f'"{path[-1]}" is missing in {owner}'
        document.add_problem(path[:-1], "missing-key", message, expected=describe_schema(schema_at(path)), at_key=True)
    elif "message" in context:
        hint = str(context["hint"])
        document.add_problem(path, kind, context["message"], expected=context["expected"], hint=hint, at_key=at_key)
        _mark_broken(document, path, at_key)
    else:
        _add_invalid_value(document, path, at_key)
        _mark_broken(document, path, at_key)


def _add_unknown_key(document: Document, path: Path) -> None:
    name, known = str(path[-1]), _known_keys(path[:-1])
    owner = format_path(path[:-1]) or "the file"
    hint = did_you_mean(name, known) or _find_places(name)
    expected = f"one of: {', '.join(known)}" if not hint and len(known) <= _FEW else ""
    if not hint and not expected:
        hint = "`dragoman schema config` describes all keys"
    document.add_problem(
        path, "unknown-key", f'unknown key "{name}" in {owner}', expected=expected, hint=hint, at_key=True
    )


def _find_places(name: str) -> str:
    """Where a key belongs that is unknown at one place, as in `it is a key of: the file, providers.NAME`."""
    places = [place for place, keys in _list_mappings(_schema(), "") if name in keys]
    return f"it is a key of: {', '.join(places)}" if places else ""


def _list_mappings(schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, Collection[str]]]:
    """Every mapping with keys of its own: where it is, and its keys."""
    schema = _resolve(schema)
    keys = schema.get("properties", {})
    if keys:
        yield place or "the file", keys
    for key, value in keys.items():
        yield from _list_mappings(value, f"{place}.{key}".removeprefix("."))
    if item := _item_schema(schema):
        yield from _list_mappings(item, f"{place}[]" if "items" in schema else f"{place}.NAME")


def _add_invalid_value(document: Document, path: Path, at_key: bool) -> None:
    expected = schema_at(path[:-1]).get("propertyNames", {}) if at_key else schema_at(path)
    node = document.find(path)
    value = f'"{path[-1]}"' if at_key or node is None else _describe_value(node, path)
    hint = did_you_mean(str(path[-1]) if at_key or node is None else node.source_text, _options(expected))
    message = (
        f"{format_path(path[:-1])} cannot have the key {value}" if at_key else f"{format_path(path)} cannot be {value}"
    )
    document.add_problem(path, "invalid-value", message, expected=describe_schema(expected), hint=hint, at_key=at_key)


def _describe_value(node: Node, path: Path) -> str:
    """The value as a message shows it: never a secret, and never the value of a variable."""
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, list):
        return "a list" if node.value else "an empty list"
    if node.value is None:
        return "empty"
    if node.raw is not None:
        return f'the value of "{node.raw}"'
    if is_secret(path):
        return "this text" if isinstance(node.value, str) else "a number"
    quoted = f'"{node.value}"' if isinstance(node.value, str) else str(node.value)
    return f"the text {quoted}" if isinstance(node.value, str) else quoted.lower()


def _mark_broken(document: Document, path: Path, at_key: bool) -> None:
    """Prevent further problems about a value that already has one."""
    node = document.find(path)
    if node is not None and not at_key:
        node.broken = True


def describe_schema(schema: Mapping[str, Any]) -> str:
    """The values that a part of the schema accepts, in a few words."""
    if options := _options(schema):
        return f"one of: {', '.join(options)}"
    if unit := schema.get("x-unit"):
        return f"{_UNITS[unit]}, more than 0"
    bounds = " and ".join(words.format(schema[name]) for name, words in _BOUNDS if name in schema)
    return ", ".join(filter(None, (_KINDS[schema["type"]], bounds, _describe_contents(schema))))


def _describe_contents(schema: Mapping[str, Any]) -> str:
    """The keys and values that a mapping or a list may contain."""
    keys = {"enum": sorted(schema["properties"])} if "properties" in schema else schema.get("propertyNames", {})
    item = _resolve(_item_schema(schema))
    known = f"each key {describe_schema(keys)}" if _options(keys) else ""
    held = f"each {'item' if schema['type'] == 'array' else 'value'} {describe_schema(item)}" if item else ""
    return ", ".join(filter(None, (known, held)))


def _options(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return [str(option).lower() if isinstance(option, bool) else str(option) for option in found]


def schema_at(path: Path) -> Mapping[str, Any]:
    """The part of the models' schema for the value at a path; empty if there is none."""
    schema: Mapping[str, Any] = _schema()
    for part in path:
        schema = _resolve(schema.get("properties", {}).get(part) or _item_schema(schema))
    return schema


def _item_schema(schema: Mapping[str, Any]) -> Any:
    """The schema of every item of a list, or of every value of a mapping with names of the user's choice."""
    by_pattern: Any = next(iter(schema.get("patternProperties", {}).values()), {})
    return schema.get("items") or schema.get("additionalProperties") or by_pattern


def _resolve(schema: Mapping[str, Any] | bool) -> Mapping[str, Any]:
    """Follow references, and take the first alternative of an optional value."""
    if not isinstance(schema, Mapping):
        return {}
    if "anyOf" in schema:
        return _resolve(schema["anyOf"][0])
    if "$ref" in schema:
        return _resolve(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    return schema


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return Config.describe_shape()
