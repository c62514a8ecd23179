"""A text of many values is parsed in parts, with the same result as orjson's for the whole text."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import jsontext
from dragoman.adapters.jsontext import find_parts, read_right_object
from dragoman.adapters.long_strings import LARGE
from dragoman.adapters.long_values import PART, LongValue, find_long_values, parse_in_parts

WORDS = st.sampled_from(["", "a", "é", '"', "\\", "[", "]}", ",", '\\",[{', "x" * 70])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | WORDS,
    lambda inside: st.lists(inside, max_size=8) | st.dictionaries(WORDS | st.text(max_size=3), inside, max_size=8),
    max_leaves=60,
)


@given(VALUES, st.integers(1, 12), st.sampled_from([0, orjson.OPT_INDENT_2]))
def test_parts_make_the_same_value_with_members_in_the_same_order(value: object, part: int, layout: int) -> None:
    text = orjson.dumps(value, option=layout)
    assert orjson.dumps(parse_in_parts(text, find_long_values(text, part))) == orjson.dumps(value)


MEMBERS = b",".join(b'"k%d":1' % number for number in range(60_000))
ITEMS = b",".join([b'{"role":"user","content":"[\\"{"}'] * 15_000)
TEXTS = {
    "strings": b'{"a": [%b]}' % b",".join([b'"a"'] * 60_000),
    "numbers": b'{"a": [%b]}' % b",".join([b"12345"] * 200_000),
    "members": b'{"a": {%b}}' % MEMBERS,
    "members of the body": b"{%b}" % MEMBERS,
    "messages, spaced": b' {"messages" : [ %b ] , "b": [] } ' % ITEMS.replace(b",", b" , "),
    "short ones in one that is long": b"[%b]" % b",".join([b"[%b]" % b",".join([b"[]"] * 100)] * 600),
    "long ones in one that is long": b"[%b]" % b",".join([b"[%b]" % b",".join([b"{}"] * 3_000)] * 20),
    "one in another": (b"[%b," % b",".join([b"{}"] * 400)) * 120 + b"1" + b"]" * 120,
    "deep ones, all a little shorter than a part": (b"[%b," % b",".join([b"1"] * (PART - 1))) * 30 + b"1" + b"]" * 30,
    "strings of a hundred bytes": b'{"a": [%b]}' % b",".join([b'"%b"' % (b"b" * 100)] * 60_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_part_is_long(name: str) -> None:
    text, sizes = TEXTS[name], []

    def parse(part: bytes) -> Any:
        sizes.append(len(part))
        return orjson.loads(part)

    assert parse_in_parts(text, find_long_values(text, PART), parse) == orjson.loads(text)
    assert max(sizes) <= max(len(text) // 8, 16_000)


def test_a_short_value_is_not_looked_at() -> None:
    assert find_parts(b'{"messages": [%b]}' % b",".join([b"{}"] * 1_000)) == []
    assert len(find_parts(b'{"messages": [%b]}' % b",".join([b"{}"] * 6_000))) == 1


def test_a_byte_order_mark_and_long_strings_keep_their_places() -> None:
    long = "é\\n" * LARGE
    items = ",".join(['{"c": ["d"]}'] * 6_000)
    for text in (f'\ufeff{{"a": ["{long}", {items}], "b": 1}}', f'{{"b": 1, "a": [{items}, "{long}"]}}'):
        raw = text.encode()
        found = find_parts(raw)
        assert [one.path for one in found] == [("a",)]
        assert read_right_object(raw, found) == read_right_object(raw, [])


def test_long_values_that_are_wrong_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"a": [%b], "b": []}' % b",".join([b"[]"] * 6_000)
    marks = find_parts(text)[0].marks
    monkeypatch.setattr(jsontext, "find_long_values", lambda text, part: [LongValue(("b",), marks)])
    assert find_parts(text) == []
