"""Placeholders and generated values of cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_error_names_the_missing_value() -> None:
    with pytest.raises(MissingValueError, match=r"saved\.other"):
        fill_placeholders("${saved.other}", VALUES)


@given(JSON)
def test_value_without_placeholders_stays_equal(value: object) -> None:
    assert fill_placeholders(value, {}) == value
