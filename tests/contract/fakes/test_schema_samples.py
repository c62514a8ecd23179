"""Samples match their schemas."""

from __future__ import annotations

import jsonschema_rs
import pytest

from dragoman.contract.fakes.schema_samples import make_sample
from dragoman.contract.json_types import JsonObject

SCHEMAS: list[JsonObject] = [
    {"type": "string", "minLength": 5},
    {"type": "string", "maxLength": 1},
    {"type": "integer", "exclusiveMinimum": 6, "maximum": 7},
    {"type": "integer", "maximum": -3},
    {"type": "number", "minimum": 0.5},
    {"type": ["null", "boolean"]},
    {"type": "null"},
    {"enum": [3, 4]},
    {"const": {"a": 1}},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3},
    {"anyOf": [{"type": "array", "items": {"enum": ["x"]}}, {"type": "null"}]},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]},
    {"properties": {"a": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"type": "boolean"}}},
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]},
        ]
    },
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_sample_matches_its_schema(schema: JsonObject) -> None:
    value = make_sample(schema)
    assert jsonschema_rs.is_valid(schema, value), value


def test_recursive_schema_ends() -> None:
    deep = make_sample({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}})
    assert "next" in deep


def test_unknown_property_is_null() -> None:
    assert make_sample({"type": "object", "required": ["a"]}) == {"a": None}
    assert make_sample({"$ref": "#/$defs/nowhere"}) is None
