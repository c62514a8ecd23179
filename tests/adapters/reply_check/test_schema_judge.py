"""A client's schema is judged in bounded work, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.adapters.reply_check.schema_judge import find_violation


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "object", "required": ["a"]}, {}, "the whole breaks the rule 'required'"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, 3, "the whole breaks the rule 'type'"),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}, {"a": None}, None),
        (
            {"type": "array", "items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"type": "null"}}},
            [1],
            "[0] breaks the rule 'type'",
        ),
    ],
)
def test_the_first_violation(schema: Any, value: Any, problem: str | None) -> None:
    assert find_violation(value, schema, 10) == problem


LAUGHS = {
    "$ref": "#/$defs/l9",
    "$defs": {
        "l0": {"type": "string"},
        **{f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n - 1}"} for _ in range(9)]} for n in range(1, 10)},
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        LAUGHS,
        {"type": 7},
        {"$ref": "https://example.com/schema"},
        {"allOf": [{"$ref": "#/nowhere"}]},
        [],
        "text",
    ],
)
def test_what_cannot_be_judged_has_no_violation(schema: Any) -> None:
    assert find_violation({"a": 1}, schema, 10) is None


def test_a_large_schema_is_not_judged_for_a_long_text() -> None:
    schema = {"type": "string", "enum": [str(number) for number in range(5000)]}
    assert find_violation("x", schema, 3) is not None
    assert find_violation("x" * 20_000, schema, 20_002) is None
