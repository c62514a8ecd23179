"""The loader, and RFC 7396 with the cases of its appendix A."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.schemas import SchemaNotFound, load, merge_patch, names, profiles

APPENDIX: list[tuple[object, object, object]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), APPENDIX)
def test_the_examples_of_rfc_7396(target: object, patch: object, result: object) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == result
    assert (target, patch) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_a_patch_applied_twice_is_applied_once(target: object, patch: object) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize("name", ["hub/chat.nothing", "nobody/chat.request", "hub", ""])
def test_the_error_for_an_unknown_schema_lists_the_known_ones(name: str) -> None:
    for look_up in (load, profiles):
        with pytest.raises(SchemaNotFound, match=r"hub/chat\.request"):
            look_up(name)


def test_a_profile_without_a_patch_is_the_documented_one() -> None:
    assert load("hub/chat.reply", "actual") == load("hub/chat.reply")


def test_loading_a_profile_leaves_the_documented_one_alone() -> None:
    for name in names():
        before = copy.deepcopy(load(name))
        for profile in profiles(name):
            load(name, profile)
        assert load(name) == before
