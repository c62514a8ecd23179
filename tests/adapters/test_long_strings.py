"""Long strings of a large text are parsed apart, with the same result as orjson's for the whole text."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import ANY

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import jsontext, long_strings
from dragoman.adapters.chat.messages import PlainMessages
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import get_outline
from dragoman.adapters.jsontext import read_object
from dragoman.adapters.long_strings import parse_json, write_json
from dragoman.contract.json_types import JsonValue

PIECES = (
    '"',
    '"',
    "\\",
    "\\n",
    '\\"',
    "\\u00e9",
    "\\ud83d\\ude00",
    "é",
    "😀",
    "abcdefgh",
    "1",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
)
PIECES += (" ", "\t", "\x00", '{"a":"', '"}', '","', '":"')


@pytest.fixture(params=[5, 14])
def small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Few bytes count as large; a slice has so many."""
    shrink(monkeypatch, request.param)


def shrink(patch: pytest.MonkeyPatch, most: int = 5) -> None:
    for name, size in (("LARGE", 4), ("_LONG", 6), ("_SLICE", most)):
        patch.setattr(long_strings, name, size)


def parse(text: bytes, by: object) -> JsonValue:
    assert callable(by)
    try:
        return by(text)
    except orjson.JSONDecodeError as error:
        return f"{error.pos}: {error.msg}"


@pytest.mark.usefixtures("small")
@given(st.lists(st.sampled_from(PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode()))
def test_any_text_is_parsed_as_by_orjson(text: bytes) -> None:
    assert parse(text, parse_json) == parse(text, orjson.loads)


@pytest.mark.usefixtures("small")
@given(
    st.recursive(
        st.integers(-9, 9) | st.text(max_size=40),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner),
        max_leaves=20,
    )
)
def test_any_value_is_parsed(value: JsonValue) -> None:
    assert parse_json(orjson.dumps(value)) == value
    assert write_json(value) == orjson.dumps(value)


def read(text: bytes, most: int) -> JsonValue:
    try:
        return read_object(text, most)
    except Fault as fault:
        return [fault.code, list(fault.path), fault.message]


MEMBERS = (
    '"a":1',
    '"a":"abcdefgh"',
    '"b":["abcdefgh{[,",{}]',
    '"c":"abcdef\\"gh"',
    '"d":123456789012345678901234567890',
)
MEMBERS += ('"e":' + "[" * 127 + '"abcdefgh"' + "]" * 127, '"f":' + "[" * 128 + '"abcdefgh"' + "]" * 128)


@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
    | st.lists(st.sampled_from(MEMBERS), max_size=6).map(lambda members: "{" + ",".join(members) + "}"),
    st.integers(0, 20) | st.just(1_000),
)
def test_a_request_without_its_long_strings_is_judged_as_the_whole_one(text: str, most: int) -> None:
    raw = text.encode()
    whole = read(raw, most)
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        patch.setattr(jsontext, "_LARGE", 0)
        cut = read(raw, most)
        patch.setattr(long_strings, "LARGE", sys.maxsize)
        assert cut == read(raw, most)
    if not isinstance(whole, list):
        assert cut == whole


def test_the_escapes_of_a_long_string_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b'{"":"%b"}' % (b"abc\\n" * 100)
    shrink(monkeypatch)
    assert read(raw, 4) == {"": "abc\n" * 100}
    assert read(raw, 3) == ["too_many_values", [], ANY]


def test_the_marks_of_a_long_string_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "get_outline", lambda text: sizes.append(len(text)) or get_outline(text))
    sizes: list[int] = []
    body = {"model": "m", "input": "{[,abcd" * 1_000_000}
    assert read_object(orjson.dumps(body)) == body
    assert max(sizes) < 1_000


def test_no_long_text_is_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    image, other = "A" * 6_000_000, "é" * 3_000_000
    text = orjson.dumps({"a": [{"image": image}, 1], "b": other, "c": {"d": "e"}})
    sizes = []

    def loads(part: bytes) -> JsonValue:
        sizes.append(len(part))
        value: JsonValue = orjson.loads(part)
        return value

    monkeypatch.setattr(long_strings, "orjson", SimpleNamespace(loads=loads, JSONDecodeError=orjson.JSONDecodeError))
    assert parse_json(text) == {"a": [{"image": image}, 1], "b": other, "c": {"d": "e"}}
    assert max(sizes) < 300_000


def test_no_long_string_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body: dict[str, Any] = {"a": [{"image": "A" * 6_000_000}, 1], "b": '"é\n' * 1_000_000, "c": {"d": "e"}}
    body["messages"] = PlainMessages([{"role": "user", "content": "A" * 3_000_000}])
    sizes = []

    def dumps(value: JsonValue) -> bytes:
        written = orjson.dumps(value)
        sizes.append(len(written))
        return written

    monkeypatch.setattr(long_strings, "orjson", SimpleNamespace(dumps=dumps))
    assert write_json(body) == orjson.dumps(body)
    assert max(sizes) < 600_000


def test_a_small_text_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: bytes) -> NoReturn:
        raise AssertionError("looked")

    monkeypatch.setattr(long_strings, "_find_long_strings", never)
    assert parse_json(b'{"a":"%b"}' % (b"x" * 1_000_000)) == {"a": "x" * 1_000_000}


@pytest.mark.parametrize("letter", ["\\n", '\\"', "\\\\", "\\u00e9", "\\ud83d\\ude00", '{\\"a\\": [1, \\"b\\"]}, '])
def test_a_long_string_with_escapes_is_parsed_in_slices(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def watch(text: bytes) -> JsonValue:
        sizes.append(len(text))
        value: JsonValue = loads(text)
        return value

    text = b'{"a": "%b"}' % (letter * 600_000).encode()
    wanted, loads = orjson.loads(text), orjson.loads
    monkeypatch.setattr(orjson, "loads", watch)
    assert parse_json(text) == wanted
    assert max(sizes) < 70_000
