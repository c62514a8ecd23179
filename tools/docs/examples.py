"""Values that a schema allows: the smallest object with a given value at a given place, and values for a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import jsonschema_rs

from dragoman.schemas import Schema

from .shape import Place, merge_all_of, resolve

__all__ = ["Json", "build_body", "example", "example_values"]

Json: TypeAlias = Any

_OBJECT = {"type": "object", "properties": {"x": {"type": "integer"}}}
_BY_NAME: Mapping[str, tuple[Json, ...]] = {
    "name": ("f",),
    "url": ("https://example.com/a.png",),
    "image_url": ("https://example.com/a.png", {"url": "https://example.com/a.png"}),
    "arguments": ('{"x":1}',),
    "tool_call_id": ("call_1",),
    "parameters": (_OBJECT,),
    "schema": (_OBJECT,),
    "stream_options": ({"include_usage": True}, {"include_obfuscation": False}),
    "logit_bias": ({"50256": -100},),
    "metadata": ({"key": "value"},),
    "cache_control": ({"type": "ephemeral"},),
    "chat_template_kwargs": ({"enable_thinking": True},),
    "annotations": ([],),
    "citations": ([],),
}
_INNER: Mapping[tuple[str, ...], dict[str, Json]] = {("response_format", "json_schema"): {"type": "json_schema"}}
"""The keys that an object needs together with another key."""
_TEXT: Schema = {"type": "string"}
_FAR = 1000
_LONG = 100


def build_body(root: Schema, place: Place, value: Json) -> dict[str, Json]:
    """Build the smallest object with the value at the place, below the top-level key that the place begins with."""
    name, rule = place[0].name, root["properties"][place[0].name]
    return {name: _build_value(root, rule, place, value) if len(place) > 1 else value}


def example(root: Schema, rule: Schema, name: str = "") -> Json:
    """One value that the rule allows, for a field of that name."""
    return next(_candidates(root, rule, name))


def example_values(root: Schema, rule: Schema, name: str) -> list[Json]:
    """A few values that may fare differently: every word of an enum, the ends of a range, one of each type."""
    found: list[Json] = []
    for value in _candidates(root, rule, name):
        if not any(value is other or (value == other and type(value) is type(other)) for other in found):
            found.append(value)
    return found


def _build_value(root: Schema, rule: Schema, place: Place, value: Json) -> Json:
    """Build the value of the rule for the first step of the place, including the values of the other steps."""
    step, name = place[0], place[1].name
    rule = resolve(root, rule)
    if step.many:
        rule = rule["items"]
    fixed = {step.when.key: step.when.values[0]} if step.when else {}
    fixed.update(_INNER.get((step.name, name), {}))
    if len(place) > 2:
        child = next(part["properties"][name] for part in _parts(root, rule, fixed) if _has_property(part, name))
        value = _build_value(root, child, place[1:], value)
    found = _object(root, rule, {**fixed, name: value})
    return [found] if step.many else found


def _has_property(part: Schema, name: str) -> bool:
    return "x-source" in part.get("properties", {}).get(name, {})


def _object(root: Schema, rule: Schema, fixed: Mapping[str, Json]) -> dict[str, Json]:
    body: dict[str, Json] = dict(fixed)
    properties: dict[str, Schema] = {}
    for part in _parts(root, rule, body):
        own = part.get("properties", {})
        properties.update({name: child for name, child in own.items() if _has_property(part, name)})
        for name in part.get("required", ()):
            if name not in body:
                body[name] = example(root, properties.get(name, _TEXT), name)
    return body


def _parts(root: Schema, rule: Schema, body: Mapping[str, Json]) -> Iterator[Schema]:
    """Yield the rule and the rules that it applies to this object. A condition is checked when it is reached."""
    rule = resolve(root, rule)
    yield rule
    for branch in rule.get("allOf", ()):
        yield from _parts(root, branch, body)
    if "if" in rule:
        holds = jsonschema_rs.is_valid(rule["if"], dict(body))
        yield from _parts(root, rule.get("then" if holds else "else", {}), body)


def _candidates(root: Schema, rule: Schema, name: str) -> Iterator[Json]:
    rule = resolve(root, rule)
    if name in _BY_NAME and "type" in rule:
        yield from (value for value in _BY_NAME[name] if _is_allowed(rule, value))
        return
    plain = merge_all_of(rule)
    if "const" in plain:
        yield plain["const"]
        return
    if "enum" in plain:
        yield from (value for value in plain["enum"] if value is not None)
        return
    types = plain.get("type", "object")
    for kind in [types] if isinstance(types, str) else types:
        yield from _of_type(root, plain, kind)


def _is_allowed(rule: Schema, value: Json) -> bool:
    return jsonschema_rs.is_valid({"type": rule["type"]}, value)


def _of_type(root: Schema, rule: Schema, kind: str) -> Iterator[Json]:
    if kind == "string":
        words = [branch["then"]["enum"] for branch in rule.get("allOf", ()) if branch.get("if") == {"type": "string"}]
        yield from words[0] if words else ["text"]
    elif kind == "boolean":
        yield from (True, False)
    elif kind in ("integer", "number"):
        yield from _numbers(rule, whole=kind == "integer")
    elif kind == "array":
        yield from _lists(root, rule)
    elif kind == "object":
        yield _object(root, rule, {}) or _some_key(root, rule)


def _lists(root: Schema, rule: Schema) -> Iterator[list[Json]]:
    items = rule.get("items", _TEXT)
    yield from ([item] for item in _candidates(root, items, ""))
    if rule.get("maxItems", _LONG) < _LONG:
        yield [example(root, items)] * rule["maxItems"]


def _some_key(root: Schema, rule: Schema) -> dict[str, Json]:
    for name, child in rule.get("properties", {}).items():
        return {name: example(root, child, name)}
    return {"key": "value"}


def _numbers(rule: Schema, *, whole: bool) -> Iterator[float]:
    step = 1 if whole else 0.001
    low = rule.get("minimum", rule["exclusiveMinimum"] + step if "exclusiveMinimum" in rule else -_FAR)
    high = rule.get("maximum", max(_FAR, 2 * low))
    middle = 100 if whole else 0.5
    yield min(max(middle, low), high)
    yield low
    yield high
