"""Reading the fields of a schema, and describing a field's schema in words."""

from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonObject
from tools.docs.shape import Step, When, format_place, merge_places, read_shape
from tools.docs.words import describe_limits, describe_type

SOURCE = {"x-source": "a reference"}
SCHEMA: JsonObject = {
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


def test_fields_are_split_by_the_kind_of_object() -> None:
    found = read_shape(SCHEMA)
    assert [format_place(place) for place in found.fields] == [
        "items",
        "items[].type",
        "items[type=a].text",
        "items[type=b].text",
    ]
    assert [format_place(place) for place in merge_places(found.fields)] == [
        "items",
        "items[].type",
        "items[type=a,b].text",
    ]
    assert [field.required for field in found.fields.values()] == [True, True, False, False]
    assert [format_place(place) for place in merge_places(found.closed)] == ["items[type=a,b]"]


def test_rules_between_fields_are_remarks() -> None:
    said = [(format_place(remark.place), remark.text) for remark in read_shape(SCHEMA).remarks]
    assert said == [
        ("items[type=a].text", "required unless `other` is given"),
        ("items[type=b].text", "required unless `other` is given"),
        ("items[type=c].text", "required"),
    ]


def test_an_unknown_condition_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot describe"):
        read_shape({"if": {"properties": {"x": {"pattern": "x"}}}, "then": {"required": ["y"]}})


def test_an_unknown_keyword_is_an_error() -> None:
    with pytest.raises(ValueError, match="multipleOf"):
        describe_limits({}, {"type": "integer", "multipleOf": 2})


def test_all_kinds_together_need_no_name() -> None:
    places = [(Step("m", True, When("role", (role,), ("a", "b"))), Step("x")) for role in "ab"]
    assert [format_place(place) for place in merge_places(places)] == ["m[].x"]
    assert format_place(places[0]) == "m[role=a].x"


def test_places_that_differ_twice_are_not_merged() -> None:
    def place(role: str, kind: str) -> tuple[Step, ...]:
        return (Step("m", True, When("role", (role,))), Step("p", True, When("type", (kind,))), Step("x"))

    found = merge_places([place("user", "text"), place("user", "image"), place("tool", "text")])
    assert [format_place(one) for one in found] == ["m[role=user].p[type=text,image].x", "m[role=tool].p[type=text].x"]


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
def test_limits_in_words(rule: JsonObject, words: str) -> None:
    assert describe_limits({}, rule) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"type": ["string", "array", "null"], "items": {"type": "string"}}, "string, array of strings or null"),
        ({"const": 0}, "integer"),
        ({"enum": ["a", None]}, "string or null"),
        ({}, "any"),
    ],
)
def test_types_in_words(rule: JsonObject, words: str) -> None:
    assert describe_type({}, rule) == words
