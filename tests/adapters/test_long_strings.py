"""Long strings of a large text are parsed apart, with the same result as orjson's for the whole text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import long_strings
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes count as large."""
    for name, size in (("LARGE", 4), ("_LONG", 6), ("_SLICE", 5)):
        monkeypatch.setattr(long_strings, name, size)


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
    body = {"a": [{"image": "A" * 6_000_000}, 1], "b": '"é\n' * 1_000_000, "c": {"d": "e"}}
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
