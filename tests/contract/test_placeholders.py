"""Placeholders, long values and paths of cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.contract.json_path import ABSENT, find_value, parse_path
from dragoman.contract.placeholders import MissingValueError, fill_placeholders

VALUES = {"model": "m", "saved": {"call_id": "call_1", "count": 3}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(blacklist_characters="$"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${model}", "m"),
        ("a ${model} b", "a m b"),
        ("${saved.count}", 3),
        ("${saved.count} calls", "3 calls"),
        ({"${model}": "${saved.call_id}"}, {"m": "call_1"}),
        ([{"$times": 3, "item": {"name": "t${n}"}}], [{"name": "t1"}, {"name": "t2"}, {"name": "t3"}]),
        ([0, {"$times": 2, "item": "${n}"}, 9], [0, 1, 2, 9]),
        ({"$text": "ab", "times": 3}, "ababab"),
        ("costs 5$", "costs 5$"),
    ],
)
def test_placeholders_are_filled(text: object, expected: object) -> None:
    assert fill_placeholders(text, VALUES) == expected


def test_a_missing_value_is_named() -> None:
    with pytest.raises(MissingValueError, match=r"saved\.other"):
        fill_placeholders("${saved.other}", VALUES)


@given(JSON)
def test_what_has_no_placeholder_stays(value: object) -> None:
    assert fill_placeholders(value, {}) == value


BODY = {
    "choices": [{"index": 0, "message": {"content": "a"}}, {"index": 1, "message": {"content": "b"}}],
    "output": [{"type": "message"}, {"type": "function_call", "call_id": "c"}],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", BODY),
        ("choices[0].message.content", "a"),
        ("choices[-1].index", 1),
        ("choices[*].index", [0, 1]),
        ("choices[*].message.content", ["a", "b"]),
        ("output[type=function_call].call_id", "c"),
        ("output[type=reasoning].id", ABSENT),
        ("choices[7]", ABSENT),
        ("choices.index", ABSENT),
        ("output[*].call_id", [ABSENT, "c"]),
    ],
)
def test_paths(path: str, expected: object) -> None:
    assert find_value(BODY, path) == expected


@pytest.mark.parametrize("path", ["a[", "a[x]", "a]b", "a..[0]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(path)
