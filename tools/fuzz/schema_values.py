"""Values that a JSON Schema of this project accepts: a random choice of the optional keys, bounds, odd texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import jsonschema_rs

from dragoman.adapters.paths import lookup
from dragoman.adapters.validation import Validator
from dragoman.schemas import Schema
from tools.docs.shape import resolve

__all__ = ["TEXTS", "SchemaValues"]

TEXTS = (
    "hi", "", " ", "a\nb", "日本語", "🙂", "e\u0301", "\u2028", "\x00", '"', "\\", "{}", '{"a": 1}', "[DONE]",
    "data: x\n\n", "<think>a</think>b", "x" * 70, "null", "https://example.com/a.png", "call_1",
    "data:image/png;base64,AAAA", "low",
)  # fmt: skip
_DEEPEST = 7
_TRIES = 12
_ARBITRARY: tuple[Any, ...] = ({"type": "object", "properties": {"a": {"type": "string"}}}, {}, "x", 1, None, [1])


class SchemaValues:
    """Draws values of one schema. `fullness` is the share of the optional keys that a value has."""

    def __init__(self, random: Random, validator: Validator) -> None:
        self._random = random
        self._validator = validator
        self._root = validator.schema
        self._fullness = random.choice((0.1, 0.3, 0.7, 1.0))

    def draw(self) -> Any:
        """A value that the schema accepts, if it is found in a few tries; else one that comes near."""
        return self.settle(self._draw(self._root, 0))

    def draw_property(self, name: str) -> Any:
        """A value for one of the schema's keys."""
        return self._draw(self._root["properties"][name], 1)

    def settle(self, body: Any) -> Any:
        """Remove from a body what its schema does not accept, as far as the rest allows it."""
        for _ in range(_TRIES):
            if self._validator.accepts(body):
                break
            path = next(self._validator.violations(body)).path
            while path and not _has(lookup(body, path[:-1]), path[-1]):
                path = path[:-1]  # a key is missing: its owner goes
            if not path:
                break
            del lookup(body, path[:-1])[path[-1]]
        return body

    def _draw(self, rule: Schema, depth: int) -> Any:
        rule = _flatten(self._root, rule)
        if "const" in rule:
            return rule["const"]
        if "enum" in rule:
            return self._random.choice(rule["enum"])
        if "x-recursive" in rule or depth > _DEEPEST:
            return self._random.choice(_ARBITRARY) if "type" not in rule else self._draw_type(rule, depth)
        value = self._draw_type(rule, depth)
        return self._apply_conditions(rule, value, depth)

    def _draw_type(self, rule: Schema, depth: int) -> Any:
        types = rule.get("type")
        if types is None:
            types = "object" if "properties" in rule else "array" if "items" in rule else None
        if types is None:
            return self._random.choice(_ARBITRARY)
        if isinstance(types, list):
            some = [one for one in types if one != "null"]
            types = "null" if "null" in types and self._random.random() < 0.1 else self._random.choice(some or types)
        return _DRAW[types](self, rule, depth)

    def _draw_object(self, rule: Schema, depth: int) -> Any:
        required, known = rule.get("required", ()), rule.get("properties", {})
        share = 0.0 if depth > _DEEPEST else self._fullness
        names = [name for name in known if name in required or self._random.random() < share]
        names += [name for name in required if name not in known]
        value = {name: self._draw(known.get(name, {}), depth + 1) for name in names}
        if not known and isinstance(rule.get("additionalProperties"), dict):
            value["key"] = self._draw(rule["additionalProperties"], depth + 1)
        return value

    def _draw_array(self, rule: Schema, depth: int) -> Any:
        low, high = rule.get("minItems", 0), rule.get("maxItems", 4)
        size = self._random.randint(low, max(low, min(high, low + 3)))
        return [self._draw(rule.get("items", {}), depth + 1) for _ in range(size)]

    def _draw_string(self, rule: Schema, depth: int) -> Any:
        low, high = rule.get("minLength", 0), rule.get("maxLength", 10_000)
        pattern = rule.get("pattern")
        texts = [text for text in (*TEXTS, "a" * low, "a" * min(high, 300)) if low <= len(text) <= high]
        fit = [text for text in texts if pattern is None or re.search(pattern, text)]
        return self._random.choice(fit or texts)

    def _draw_integer(self, rule: Schema, depth: int) -> Any:
        low, high = _bounds(rule)
        low, high = int(low), int(high)
        return self._random.choice((low, high, self._random.randint(low, max(low, min(high, low + 9)))))

    def _draw_number(self, rule: Schema, depth: int) -> Any:
        low, high = _bounds(rule)
        return self._random.choice((low, high, self._random.uniform(low, high), self._draw_integer(rule, depth)))

    def _draw_boolean(self, rule: Schema, depth: int) -> Any:
        return self._random.random() < 0.5

    def _draw_null(self, rule: Schema, depth: int) -> Any:
        return None

    def _apply_conditions(self, rule: Schema, value: Any, depth: int) -> Any:
        """Give the value what the conditional branches require of it."""
        for branch in (rule, *rule.get("allOf", ())):
            if "if" in branch:
                chosen = branch.get("then" if _meets(self._root, branch["if"], value) else "else")
                value = value if chosen is None else self._conform(rule, _flatten(self._root, chosen), value, depth)
        return value

    def _conform(self, rule: Schema, chosen: Schema, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            known = rule.get("properties", {})
            for name, own in chosen.get("properties", {}).items():
                if name in value or name in chosen.get("required", ()) or self._random.random() < self._fullness:
                    value[name] = self._draw({**known.get(name, {}), **own}, depth + 1)
            for name in chosen.get("required", ()):
                if name not in value:
                    value[name] = self._draw(known.get(name, {}), depth + 1)
            if chosen.get("additionalProperties") is False:
                value = {name: one for name, one in value.items() if name in chosen.get("properties", {})}
        elif isinstance(value, list) and "items" in chosen:
            value = [self._draw({**rule.get("items", {}), **chosen["items"]}, depth + 1) for _ in value]
        elif "type" in chosen or "enum" in chosen:
            return self._draw({**rule, **chosen}, depth + 1)
        return self._apply_conditions(chosen, value, depth)


_DRAW: Mapping[str, Any] = {
    "object": SchemaValues._draw_object,
    "array": SchemaValues._draw_array,
    "string": SchemaValues._draw_string,
    "integer": SchemaValues._draw_integer,
    "number": SchemaValues._draw_number,
    "boolean": SchemaValues._draw_boolean,
    "null": SchemaValues._draw_null,
}


def _flatten(root: Schema, rule: Schema) -> Schema:
    """Follow references, and merge those members of `allOf` that have no condition."""
    rule = resolve(root, rule)
    for branch in rule.get("allOf", ()):
        if "if" not in branch:
            own = _flatten(root, branch)
            properties = {**rule.get("properties", {}), **own.get("properties", {})}
            required = [*rule.get("required", ()), *own.get("required", ())]
            rule = {**own, **rule, "required": required, **({"properties": properties} if properties else {})}
    return rule


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else isinstance(holder, list) and key < len(holder)


def _bounds(rule: Schema) -> tuple[float, float]:
    """The least and the greatest number to draw."""
    low: Any = rule.get("minimum", rule.get("exclusiveMinimum", -3))
    high: Any = rule.get("maximum", rule.get("exclusiveMaximum", max(low, 0) + 1000))
    return low, high


def _meets(root: Schema, condition: Schema, value: Any) -> bool:
    return bool(_compile(json.dumps({**condition, "$defs": root.get("$defs", {})})).is_valid(value))


@cache
def _compile(text: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(text))
