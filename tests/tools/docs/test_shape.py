"""From a schema to its fields, and from a field's schema to words."""

from __future__ import annotations

from typing import Any

import pytest

from tools.docs.shape import Step, When, merged, shape, written
from tools.docs.words import kind, limits

SOURCE = {"x-source": "a reference"}
SCHEMA: dict[str, Any] = {
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}, **SOURCE}},
    "$defs": {
        "item": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string", "enum": ["a", "b", "c"], **SOURCE}},
            "allOf": [
                {"if": {"properties": {"type": {"const": "a"}}}, "then": {"$ref": "#/$defs/text"}},
                {"if": {"properties": {"type": {"const": "b"}}}, "then": {"$ref": "#/$defs/text"}},
                {"if": {"properties": {"type": {"const": "c"}}}, "then": {"required": ["text"]}},
            ],
        },
        "text": {
            "additionalProperties": False,
            "properties": {"type": {"const": "a", **SOURCE}, "text": {"type": "string", **SOURCE}},
            "if": {"required": ["other"]},
            "else": {"required": ["text"]},
        },
    },
}


def test_fields_are_told_apart_by_the_kind_of_object() -> None:
    found = shape(SCHEMA)
    assert [written(place) for place in found.fields] == [
        "items",
        "items[].type",
        "items[type=a].text",
        "items[type=b].text",
    ]
    assert [written(place) for place in merged(found.fields)] == ["items", "items[].type", "items[type=a,b].text"]
    assert [field.required for field in found.fields.values()] == [True, True, False, False]
    assert [written(place) for place in merged(found.closed)] == ["items[type=a,b]"]


def test_rules_between_fields_are_remarks() -> None:
    said = [(written(remark.place), remark.text) for remark in shape(SCHEMA).remarks]
    assert said == [
        ("items[type=a].text", "required unless `other` is given"),
        ("items[type=b].text", "required unless `other` is given"),
        ("items[type=c].text", "required"),
    ]


def test_a_condition_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="no words"):
        shape({"if": {"properties": {"x": {"pattern": "x"}}}, "then": {"required": ["y"]}})


def test_a_keyword_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="multipleOf"):
        limits({}, {"type": "integer", "multipleOf": 2})


def test_all_kinds_together_need_no_name() -> None:
    places = [(Step("m", True, When("role", (role,), ("a", "b"))), Step("x")) for role in "ab"]
    assert [written(place) for place in merged(places)] == ["m[].x"]
    assert written(places[0]) == "m[role=a].x"


def test_places_that_differ_twice_stay_apart() -> None:
    def place(role: str, kind: str) -> tuple[Step, ...]:
        return (Step("m", True, When("role", (role,))), Step("p", True, When("type", (kind,))), Step("x"))

    found = merged([place("user", "text"), place("user", "image"), place("tool", "text")])
    assert [written(one) for one in found] == ["m[role=user].p[type=text,image].x", "m[role=tool].p[type=text].x"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"minimum": 0, "maximum": 2}, "0 to 2"),
        (
            {"allOf": [{"exclusiveMinimum": 0, "x-nearest": 0.1}], "maximum": 1},
            "more than 0, at most 1 (the nearest value is 0.1)",
        ),
        ({"type": "array", "maxItems": 32}, "at most 32 items"),
        ({"type": "string", "minLength": 1}, "at least 1 character"),
        ({"enum": ["a", None], "type": ["string", "null"], "default": "a"}, "`a`; default `a`"),
        ({"enum": [None, ""]}, '`null`, `""`'),
        ({"pattern": "^a|b$"}, "matches `^a|b$`"),
        ({"pattern": "^a$", "x-message": "the letter a"}, "the letter a"),
        ({"allOf": [{"if": {"type": "string"}, "then": {"enum": ["auto"]}}]}, "a string is one of `auto`"),
        ({"additionalProperties": {"type": "string", "maxLength": 5}}, "values: string, at most 5 characters"),
    ],
)
def test_limits_in_words(rule: dict[str, Any], words: str) -> None:
    assert limits({}, rule) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"type": ["string", "array", "null"], "items": {"type": "string"}}, "string, array of strings or null"),
        ({"const": 0}, "integer"),
        ({"enum": ["a", None]}, "string or null"),
        ({}, "any"),
    ],
)
def test_types_in_words(rule: dict[str, Any], words: str) -> None:
    assert kind({}, rule) == words
