"""Made-up values fit their schemas."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from dragoman.contract.fakes.schema_samples import make_sample

SCHEMAS: list[Any] = [
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
def test_samples_fit(schema: Any) -> None:
    value = make_sample(schema)
    assert jsonschema_rs.is_valid(schema, value), value


def test_endless_schemas_end() -> None:
    deep = make_sample({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}})
    assert "next" in deep


def test_required_without_a_schema_and_unknown_references() -> None:
    assert make_sample({"type": "object", "required": ["a"]}) == {"a": None}
    assert make_sample({"$ref": "#/$defs/nowhere"}) is None
