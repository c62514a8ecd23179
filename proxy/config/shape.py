"""Each value by itself: the tree against the models, and the models' complaints in the configuration's own words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from dragoman.adapters.paths import Path, dotted

from .document import Document, Node, did_you_mean
from .masks import is_secret
from .models import Config
from .values import FROM_FILE

__all__ = ["described", "fragment", "shaped"]

_UNITS = {"seconds": "a duration such as 30s, 500ms or 2m", "bytes": "a size such as 32MiB or 64kB"}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("minLength", "at least {} character"),
    ("minItems", "at least {} item"),
)
_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}


def shaped(document: Document) -> Config | None:
    """The configuration, or None where a problem was added to the document."""
    try:
        return Config.model_validate(document.root.plain, context=FROM_FILE)
    except ValidationError as error:
        for complaint in error.errors(include_url=False):
            _explain(document, complaint["loc"], complaint["type"], complaint.get("ctx", {}))
        return None


def _explain(document: Document, path: Path, kind: str, context: Mapping[str, Any]) -> None:
    at_key = path[-1:] == ("[key]",)
    path = path[:-1] if at_key else path
    if kind == "extra_forbidden":
        _unknown_key(document, path)
    elif kind == "missing":
        owner = dotted(path[:-1]) or "the file"
        message = f'"{path[-1]}" is missing in {owner}'
        document.add(path[:-1], "missing-key", message, expected=described(fragment(path)), at_key=True)
    elif "message" in context:
        hint = str(context["hint"])
        document.add(path, kind, context["message"], expected=context["expected"], hint=hint, at_key=at_key)
        _give_up(document, path, at_key)
    else:
        _misfit(document, path, at_key)
        _give_up(document, path, at_key)


def _unknown_key(document: Document, path: Path) -> None:
    name, known = str(path[-1]), sorted(fragment(path[:-1]).get("properties", {}))
    owner = dotted(path[:-1]) or "the file"
    expected = f"one of: {', '.join(known)}"
    hint = "YAML 1.2 has no merge keys; repeat the values" if name == "<<" else did_you_mean(name, known)
    document.add(path, "unknown-key", f'unknown key "{name}" in {owner}', expected=expected, hint=hint, at_key=True)


def _misfit(document: Document, path: Path, at_key: bool) -> None:
    wanted = fragment(path[:-1]).get("propertyNames", {}) if at_key else fragment(path)
    node = document.find(path)
    got = f'"{path[-1]}"' if at_key or node is None else _got(node, path)
    hint = did_you_mean(str(path[-1]) if at_key or node is None else node.shown, _options(wanted))
    message = f"{dotted(path[:-1])} cannot have the key {got}" if at_key else f"{dotted(path)} cannot be {got}"
    document.add(path, "invalid-value", message, expected=described(wanted), hint=hint, at_key=at_key)


def _got(node: Node, path: Path) -> str:
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, list):
        return "a list" if node.value else "an empty list"
    if node.value is None:
        return "empty"
    if node.raw is not None:
        return f'what "{node.raw}" stands for'
    if is_secret(path):
        return "this text" if isinstance(node.value, str) else "a number"
    quoted = f'"{node.value}"' if isinstance(node.value, str) else str(node.value)
    return f"the text {quoted}" if isinstance(node.value, str) else quoted.lower()


def _give_up(document: Document, path: Path, at_key: bool) -> None:
    """One complaint is enough about a value that is wrong by itself."""
    node = document.find(path)
    if node is not None and not at_key:
        node.broken = True


def described(schema: Mapping[str, Any]) -> str:
    """What a part of the schema asks for, in a few words."""
    if options := _options(schema):
        return f"one of: {', '.join(options)}"
    if unit := schema.get("x-unit"):
        return f"{_UNITS[unit]}, more than 0"
    bounds = " and ".join(words.format(schema[name]) for name, words in _BOUNDS if name in schema)
    return ", ".join(filter(None, (_KINDS[schema["type"]], bounds, _inside(schema))))


def _inside(schema: Mapping[str, Any]) -> str:
    """What a mapping or a list may hold."""
    keys = {"enum": sorted(schema["properties"])} if "properties" in schema else schema.get("propertyNames", {})
    each = _resolved(_each(schema))
    known = f"each key {described(keys)}" if _options(keys) else ""
    held = f"each {'item' if schema['type'] == 'array' else 'value'} {described(each)}" if each else ""
    return ", ".join(filter(None, (known, held)))


def _options(schema: Mapping[str, Any]) -> list[str]:
    return [str(option) for option in schema.get("enum", [schema["const"]] if "const" in schema else [])]


def fragment(path: Path) -> Mapping[str, Any]:
    """The part of the models' schema that is about the value at a path; empty where there is none."""
    schema: Mapping[str, Any] = _schema()
    for part in path:
        schema = _resolved(schema.get("properties", {}).get(part) or _each(schema))
    return schema


def _each(schema: Mapping[str, Any]) -> Any:
    """The schema of every item of a list, or of every value of a mapping with names of the user's choice."""
    by_pattern: Any = next(iter(schema.get("patternProperties", {}).values()), {})
    return schema.get("items") or schema.get("additionalProperties") or by_pattern


def _resolved(schema: Mapping[str, Any] | bool) -> Mapping[str, Any]:
    """Behind references, and without the null of an optional value."""
    if not isinstance(schema, Mapping):
        return {}
    if "anyOf" in schema:
        return _resolved(schema["anyOf"][0])
    if "$ref" in schema:
        return _resolved(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    return schema


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return Config.model_json_schema()
