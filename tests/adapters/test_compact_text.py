"""The text that is sent is what would be written, and is not made from what only looks like the name of the model."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.compact_text import replace_model

KEYS = st.one_of(st.sampled_from(["model", 'a"model', "messages", "\\model", "model:"]), st.text(max_size=3))
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=5), st.sampled_from(['"model":"m"', "model", "m"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=9,
)


@given(members=st.dictionaries(KEYS, VALUES), model=VALUES, other=st.text(), is_first=st.booleans())
def test_the_text_is_that_of_the_call(members: dict[str, Any], model: Any, other: str, is_first: bool) -> None:
    body = {"model": model} | members | {"model": model} if is_first else members | {"model": model}
    sent = {**body, "model": other}
    assert replace_model(orjson.dumps(body), body, sent) in (None, orjson.dumps(sent))


def test_only_the_model_is_replaced() -> None:
    body = {"messages": [{"role": "user", "content": 'say "model":"fast"'}], "model": "fast", "seed": 1}
    sent = {**body, "model": 'a "large" one'}
    assert replace_model(orjson.dumps(body), body, sent) == orjson.dumps(sent)


@pytest.mark.parametrize(
    "sent",
    [
        {"model": "b", "x": [1]},
        {"model": "b", "x": [1], "y": 2},
        {"y": 2, "x": [1], "model": "b"},
        {"model": "b", "x": [1], "y": 2, "z": 3},
    ],
)
def test_another_body_has_another_text(sent: dict[str, Any]) -> None:
    body = {"model": "a", "x": [1], "y": 2}
    assert replace_model(orjson.dumps(body), body, sent) is None


def test_a_second_key_of_that_name_leaves_it_open_unless_the_model_is_first() -> None:
    body = {"x": {"model": "a"}, "model": "a"}
    assert replace_model(orjson.dumps(body), body, {**body, "model": "b"}) is None
    body = {"model": "a", "x": {"model": "a"}}
    sent = {**body, "model": "b"}
    assert replace_model(orjson.dumps(body), body, sent) == orjson.dumps(sent)
