"""Describes a field's schema in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dragoman.schemas import Schema

from .shape import merge_all_of, resolve

__all__ = ["describe_limits", "describe_type", "literal"]

_SILENT = frozenset(
    {"$ref", "$defs", "$schema", "$comment", "title", "type", "required", "properties", "items", "prefixItems", "allOf"}
    | {"if", "then", "else", "dependentSchemas", "additionalProperties", "x-source", "x-neutral", "x-advisory"}
    | {"x-extension", "x-dialect", "x-recursive", "x-message", "x-nearest", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "propertyNames"}
    | {"pattern", "enum", "const", "default", "not", "x-max-characters", "x-batch", "x-requires"}
    | {"x-extra-parameter", "x-versions"}
)
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def describe_type(root: Schema, rule: Schema) -> str:
    """`integer or null`, `string, array of strings or null`, ..."""
    rule = resolve(root, rule)
    given = rule.get("type")
    if given is None:
        values = [rule["const"]] if "const" in rule else rule.get("enum", ())
        given = sorted({"null" if value is None else _NAMES[type(value)] for value in values}, key="null".__eq__)
    names = [_array(root, rule) if name == "array" else name for name in ([given] if isinstance(given, str) else given)]
    if not names:
        references = [branch for branch in rule.get("allOf", ()) if "$ref" in branch]
        return describe_type(root, references[0]) if references else "any"
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def describe_limits(root: Schema, rule: Schema) -> str:
    """Describe the limits of the value in addition to its type. Raises ValueError for an unknown keyword."""
    rule = resolve(root, rule)
    unknown = {key for key in merge_all_of(rule) if key not in _SILENT}
    if unknown:
        raise ValueError(f"cannot describe {', '.join(sorted(unknown))}")
    return "; ".join(_limits(root, rule))


def literal(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value, ensure_ascii=False)}`"


def _limits(root: Schema, rule: Schema) -> Iterator[str]:
    if "x-recursive" in rule:
        yield rule["x-recursive"]
        return
    strings = [branch for branch in rule.get("allOf", ()) if branch.get("if") == {"type": "string"}]
    rule = merge_all_of(rule)
    if "const" in rule:
        yield literal(rule["const"])
    if "enum" in rule:
        yield ", ".join(literal(value) for value in rule["enum"] if value is not None or "type" not in rule)
    for branch in strings:
        yield "a string is one of " + ", ".join(map(literal, branch["then"]["enum"]))
    yield from _range(rule)
    yield from _sizes(rule)
    if "pattern" in rule and "x-message" not in rule:
        yield f"matches `{rule['pattern']}`"
    if "x-message" in rule:
        yield rule["x-message"]
    if "items" in rule:
        each = "; ".join(_limits(root, resolve(root, rule["items"])))
        if each and "properties" not in resolve(root, rule["items"]):
            yield f"each {each}"
    if isinstance(rule.get("additionalProperties"), dict):
        yield _map(root, rule)
    if "x-versions" in rule:
        yield f"only in the version {' and '.join(rule['x-versions'])}"
    if "default" in rule:
        yield f"default {literal(rule['default'])}"


def _range(rule: Schema) -> Iterator[str]:
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and high is not None:
        yield f"{low} to {high}"
        return
    parts = [
        f"{words} {rule[key]}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "less than"),
        )
        if key in rule
    ]
    if parts:
        near = f" (the nearest value is {rule['x-nearest']})" if "x-nearest" in rule else ""
        yield ", ".join(parts) + near


def _sizes(rule: Schema) -> Iterator[str]:
    for what, low, high in (
        ("character", rule.get("minLength"), rule.get("maxLength")),
        ("item", rule.get("minItems"), rule.get("maxItems")),
        ("key", None, rule.get("maxProperties")),
        ("character in all", None, rule.get("x-max-characters")),
        ("item in one call", None, rule.get("x-batch")),
    ):
        if low is not None and high is not None:
            yield f"{low} to {_count(high, what)}"
        elif low is not None:
            yield f"at least {_count(low, what)}"
        elif high is not None:
            yield f"at most {_count(high, what)}"


def _count(count: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{count} {noun}{'' if count == 1 else 's'}" + (f" {rest}" if rest else "")


def _map(root: Schema, rule: Schema) -> str:
    values = rule["additionalProperties"]
    parts = [f"values: {describe_type(root, values)}", *_limits(root, values)]
    keys = list(_sizes(rule.get("propertyNames", {})))
    return ", ".join(parts + [f"keys: {text}" for text in keys])


def _array(root: Schema, rule: Schema) -> str:
    if "items" not in rule:
        return "array"
    names = describe_type(root, rule["items"]).split(" or ")
    return "array of " + " or ".join(f"{name}s" for name in names)
