"""Samples of JSON Schemas, for generated tool arguments and structured replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.contract.json_types import JsonValue

__all__ = ["make_sample"]

_MOST_DEPTH = 12


def make_sample(schema: JsonValue, root: JsonValue = None, depth: int = 0) -> JsonValue:
    """Make a value that the schema accepts, with its required properties, or all if none is required. It supports type,
    properties, required, items, enum, const, anyOf, oneOf, allOf, local $ref, and the limits minimum, maximum,
    exclusiveMinimum, minLength, maxLength and minItems."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > _MOST_DEPTH:
        return None
    for keyword, choose in _FIXED.items():
        if keyword in schema:
            return choose(schema[keyword])
    if "$ref" in schema:
        return make_sample(_resolve_reference(str(schema["$ref"]), root), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return make_sample(schema[keyword][0], root, depth + 1)
    if schema.get("allOf"):
        return _merge_objects([make_sample(part, root, depth + 1) for part in schema["allOf"]])
    return _TYPES.get(_find_type(schema), _make_nothing)(schema, root, depth)


_FIXED: dict[str, Callable[[JsonValue], JsonValue]] = {"const": lambda value: value, "enum": lambda values: values[0]}


def _find_type(schema: Mapping[str, JsonValue]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((word for word in kind if word != "null"), "null")
    return str(kind)


def _resolve_reference(pointer: str, root: JsonValue) -> JsonValue:
    found = root
    for step in pointer.removeprefix("#").split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _merge_objects(values: list[JsonValue]) -> JsonValue:
    select_objects = [value for value in values if isinstance(value, dict)]
    return {key: value for part in select_objects for key, value in part.items()} if select_objects else values[0]


def _make_object(schema: Mapping[str, JsonValue], root: JsonValue, depth: int) -> JsonValue:
    properties = schema.get("properties", {})
    return {name: make_sample(properties.get(name), root, depth + 1) for name in schema.get("required") or properties}


def _make_array(schema: Mapping[str, JsonValue], root: JsonValue, depth: int) -> JsonValue:
    return [
        make_sample(schema.get("items", {}), root, depth + 1) for _ in range(max(1, int(schema.get("minItems", 1))))
    ]


def _make_string(schema: Mapping[str, JsonValue], _root: JsonValue, _depth: int) -> JsonValue:
    return "東京".ljust(int(schema.get("minLength", 0)), "…")[: int(schema.get("maxLength", 64))]


def _make_number(schema: Mapping[str, JsonValue], _root: JsonValue, _depth: int) -> JsonValue:
    lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return min(lowest, schema.get("maximum", lowest))


def _make_nothing(_schema: Mapping[str, JsonValue], _root: JsonValue, _depth: int) -> JsonValue:
    return None


_TYPES: dict[str, Callable[[Mapping[str, JsonValue], JsonValue, int], JsonValue]] = {
    "object": _make_object,
    "array": _make_array,
    "string": _make_string,
    "integer": _make_number,
    "number": _make_number,
    "boolean": lambda _schema, _root, _depth: True,
}
