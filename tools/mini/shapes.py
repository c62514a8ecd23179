"""Random JSON Schemas with several fields: broader than the trained ones, as requests may ask for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ["random_schema", "schema_of"]

Schema: TypeAlias = dict[str, Any]

MOST_FIELDS = 6


def random_schema(dice: random.Random, keys: Sequence[str], depth: int = 0) -> Schema:
    """Draw a schema of an object with two to six fields, one in six optional, and one level of objects in it."""
    names = dice.sample(keys, dice.randint(2, MOST_FIELDS - 3 * depth))
    kinds = [_text, _text, _text, _choice, _integer, _integer, _number, _flag, _array]
    properties: Schema = {}
    for name in names:
        nested = depth == 0 and dice.random() < 0.12
        properties[name] = random_schema(dice, keys, 1) if nested else dice.choice(kinds)(dice)
    schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in names if dice.random() < 5 / 6],
    }
    return schema | ({"additionalProperties": False} if dice.random() < 0.5 else {})


def schema_of(value: Any) -> Schema:
    """The schema of values like this one."""
    if isinstance(value, dict):
        properties = {key: schema_of(item) for key, item in value.items()}
        return {"type": "object", "properties": properties, "required": list(value), "additionalProperties": False}
    return {"type": "integer" if isinstance(value, int) else "string"}


def _text(dice: random.Random) -> Schema:
    limits: list[Schema] = [{}, {}, {}, {"maxLength": 40}, {"minLength": 3}]
    return {"type": "string"} | dice.choice(limits)


def _choice(dice: random.Random) -> Schema:
    return {
        "enum": dice.sample(["red", "green", "blue", "small", "large", "open", "closed", "new"], dice.randint(2, 5))
    }


def _integer(dice: random.Random) -> Schema:
    least = dice.randint(-50, 500)
    limits: list[Schema] = [{}, {}, {"minimum": 0}, {"minimum": least, "maximum": least + dice.randint(1, 1000)}]
    return {"type": "integer"} | dice.choice(limits)


def _number(dice: random.Random) -> Schema:
    limits: list[Schema] = [{}, {"minimum": 0, "maximum": 1}]
    return {"type": "number"} | dice.choice(limits)


def _flag(dice: random.Random) -> Schema:
    return {"type": "boolean"}


def _array(dice: random.Random) -> Schema:
    limits: list[Schema] = [{}, {}, {"minItems": 1}, {"minItems": 2, "maxItems": 3}]
    return {"type": "array", "items": dice.choice((_text, _integer))(dice)} | dice.choice(limits)
