"""A small value that a JSON Schema accepts, for made-up tool arguments and structured replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["sample"]

_DEEPEST = 12


def sample(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """One value for the schema: required properties, or all where none is required. Good for the usual keywords
    (type, properties, required, items, enum, const, anyOf, oneOf, allOf, local $ref, minimum, minLength, minItems)."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    for keyword, choose in _FIXED.items():
        if keyword in schema:
            return choose(schema[keyword])
    if "$ref" in schema:
        return sample(_resolve(str(schema["$ref"]), root), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return sample(schema[keyword][0], root, depth + 1)
    if schema.get("allOf"):
        return _merged([sample(part, root, depth + 1) for part in schema["allOf"]])
    return _TYPES.get(_type(schema), _nothing)(schema, root, depth)


_FIXED: dict[str, Callable[[Any], Any]] = {"const": lambda value: value, "enum": lambda values: values[0]}


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((word for word in kind if word != "null"), "null")
    return str(kind)


def _resolve(pointer: str, root: Any) -> Any:
    found = root
    for step in pointer.removeprefix("#").split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _merged(values: list[Any]) -> Any:
    objects = [value for value in values if isinstance(value, dict)]
    return {key: value for part in objects for key, value in part.items()} if objects else values[0]


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    properties = schema.get("properties", {})
    return {name: sample(properties.get(name), root, depth + 1) for name in schema.get("required") or properties}


def _array(schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    return [sample(schema.get("items", {}), root, depth + 1) for _ in range(max(1, int(schema.get("minItems", 1))))]


def _string(schema: Mapping[str, Any], _root: Any, _depth: int) -> Any:
    return "東京".ljust(int(schema.get("minLength", 0)), "…")[: int(schema.get("maxLength", 64))]


def _number(schema: Mapping[str, Any], _root: Any, _depth: int) -> Any:
    lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return min(lowest, schema.get("maximum", lowest))


def _nothing(_schema: Mapping[str, Any], _root: Any, _depth: int) -> Any:
    return None


_TYPES: dict[str, Callable[[Mapping[str, Any], Any, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda _schema, _root, _depth: True,
}
