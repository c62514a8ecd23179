from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonValue
from dragoman.local_engine.guidance.references import has_endless_reference
from tests.adapters.step_count import count_steps

TREE: JsonValue = {"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"items": {"$ref": "#/$defs/a"}}}}
CHAIN: JsonValue = {"$defs": {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(2_000)}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"anyOf": [{"$ref": "#"}]}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"oneOf": [True, {"$ref": "#/$defs/a"}]}}},
        {"properties": {"a~/b": {"$ref": "#/properties/a~0~1b"}}},
        {"allOf": [{"$ref": "#/allOf/0"}]},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}},
    ],
)
def test_references_that_lead_back(schema: JsonValue) -> None:
    assert has_endless_reference(schema)


@pytest.mark.parametrize(
    "schema",
    [TREE, {}, True, [], {"$ref": 7}, {"$ref": "#/missing"}, {"$ref": "https://x.test/"}, {"$ref": "#/allOf/9"}, CHAIN],
)
def test_references_that_do_not(schema: JsonValue) -> None:
    assert not has_endless_reference(schema)
    assert count_steps(lambda: has_endless_reference(schema)) < 200_000
