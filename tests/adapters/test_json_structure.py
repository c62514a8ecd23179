from __future__ import annotations

import json
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import json_structure
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import (
    exceeds_values,
    find_byte,
    find_quote,
    find_quote_before,
    get_outline,
    has_long_number,
    may_exceed_values,
)
from dragoman.adapters.jsontext import read_object
from dragoman.contract.json_types import JsonValue
from tests.adapters.step_count import count_steps

MARKS = st.text('{}[]":,\\ a1é\n')
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | MARKS,
    lambda inner: st.lists(inner) | st.dictionaries(MARKS, inner),
    max_leaves=30,
)


def count_parts(value: JsonValue) -> tuple[int, int]:
    """How many objects, arrays, strings and keys a value has, and how many commas."""
    if not isinstance(value, dict | list):
        return int(isinstance(value, str)), 0
    keys, inner = (len(value), list(value.values())) if isinstance(value, dict) else (0, value)
    counts = [count_parts(one) for one in inner]
    return 1 + keys + sum(values for values, _ in counts), max(0, len(inner) - 1) + sum(commas for _, commas in counts)


@given(VALUES, st.integers(0, 40), st.booleans())
def test_values_are_counted_outside_of_strings(value: JsonValue, most: int, spaced: bool) -> None:
    text = json.dumps(value).encode() if spaced else orjson.dumps(value)
    values, commas = count_parts(value)
    assert exceeds_values(text, most) is (len(text) > 2 * most and values + commas // 6 > most)


@pytest.mark.parametrize(
    "inner",
    [
        b"{}," * 350_000 + b"{}",
        b"[]," * 350_000 + b"[]",
        b'"",' * 350_000 + b'""',
        b"1," * 1_000_000 + b"1",
        b'{"a":1},' * 350_000 + b"{}",
        b'"' + b'\\"' * 100 + b'",' + b"[]," * 350_000 + b"[]",
    ],
    ids=["objects", "arrays", "strings", "numbers", "members", "escapes"],
)
def test_too_many_values_are_refused_before_they_are_parsed(inner: bytes) -> None:
    raw = b'{"a":[' + inner + b"]}"
    steps = count_steps(lambda: read_and_refuse(raw))
    assert steps < 1_000


def read_and_refuse(raw: bytes) -> None:
    with pytest.raises(Fault) as caught:
        read_object(raw)
    assert (caught.value.code, caught.value.status) == ("too_many_values", 413)
    assert "60000 values" in caught.value.message
    assert "server.value_limit" in caught.value.message


def test_the_limit_can_be_set() -> None:
    raw = orjson.dumps({"a": [""] * 100})
    assert read_object(raw, 200) == orjson.loads(raw)
    with pytest.raises(Fault, match="more than 20 values"):
        read_object(raw, 20)


@pytest.mark.parametrize("text", ['{"a":1}, [2], ', '\\"quoted\\", \\ ', "A" * 40], ids=["JSON", "escapes", "base64"])
def test_a_long_string_is_one_value(text: str) -> None:
    raw = orjson.dumps({"a": text * 100_000})
    assert read_object(raw) == orjson.loads(raw)


def test_the_token_arrays_of_one_embeddings_request_pass() -> None:
    """OpenAI takes 300,000 tokens in one request."""
    assert read_object(orjson.dumps({"input": [list(range(8_000, 16_000))] * 37}))


@given(VALUES)
def test_an_outline_has_what_is_outside_of_strings(value: JsonValue) -> None:
    def blank(value: JsonValue) -> str:
        if isinstance(value, dict):
            return "{" + ",".join(f'"":{blank(member)}' for member in value.values()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(blank, value)) + "]"
        return '""' if isinstance(value, str) else json.dumps(value)

    assert get_outline(orjson.dumps(value)) == blank(value).encode()


@pytest.mark.parametrize(("number", "is_long"), [("9" * 18, False), (str(2**63), True), ("1." + "5" * 19, True)])
def test_long_numbers(number: str, is_long: bool) -> None:
    assert has_long_number(f'{{"":{number}}}'.encode()) is is_long


LARGE = ['"abcdefgh"'] * 11_000  # so many values that the place of an error is not looked for


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(
    ("value", "code"),
    [
        ('{"a":1,"a":2}', "duplicate_key"),
        ('{"a":1,"\\u0061":2}', "duplicate_key"),
        ("18446744073709551616", "number_out_of_range"),
        ("-9223372036854775809", "number_out_of_range"),
        ("[[1,111111111111111111111]]", "number_out_of_range"),
        ("1" * 5_000, "number_out_of_range"),
        ("18446744073709551615", None),
        ("-9223372036854775808", None),
        ("0." + "1" * 50_000, None),
        ("1e-1000000000000000000000", None),
        ('"\\u00e9 111111111111111111111, \\" {\\"a\\":1,\\"a\\":2}"', None),
    ],
)
def test_errors_of_large_bodies_are_found(value: str, code: str | None, spaced: bool) -> None:
    comma = ", " if spaced else ","
    raw = f'{{"a":[{comma.join([*LARGE, value, "{}"])}]}}'.encode()
    if code is None:
        assert read_object(raw) == orjson.loads(raw)
        return
    with pytest.raises(Fault) as caught:
        read_object(raw)
    assert (caught.value.code, caught.value.path) == (code, ())


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7, 100])
def test_an_outline_is_the_same_in_slices(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        rb'{"a\"b":["\\","\\\\",3,"{[,"],"c":"\\\\\\\\\""}',
        rb'["\\\\\\\\\\\\","a"]',
        b'"""',
        b'{"":""}',
        b"[1,2]",
        b"",
    ]
    whole = [get_outline(text) for text in texts]
    assert whole[0] == b'{"":["","",3,""],"":""}'
    monkeypatch.setattr(json_structure, "_SLICE", 2 * step)
    assert [get_outline(text) for text in texts] == whole


@given(MARKS, st.integers(0, 40))
def test_what_exceeds_the_limit_may_exceed_it(text: str, most: int) -> None:
    raw = text.encode()
    assert may_exceed_values(raw, most) or not exceeds_values(raw, most)


def test_marks_inside_strings_may_exceed_the_limit() -> None:
    raw = b'["' + b"{[," * 100 + b'"]'
    assert may_exceed_values(raw, 100)
    assert not exceeds_values(raw, 100)
    assert not may_exceed_values(raw, 300)


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_a_byte_is_found_in_slices(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_structure, "_SCANNED", step)
    for text in (b"", b"a", b'aa"aaa"', b'"' * 5):
        for start in range(len(text) + 2):
            assert find_byte(text, b'"', start) == text.find(b'"', start)


@given(
    st.text('\\"a', max_size=30).map(str.encode), st.integers(0, 30), st.integers(0, 30), st.sampled_from([2, 4, 64])
)
def test_quotes_are_found_that_are_not_escaped(text: bytes, start: int, first: int, size: int) -> None:
    quotes = [found.end() - 1 for found in re.finditer(rb'(?<!\\)(?:\\\\)*"', text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_structure, "_SLICE", size)
        assert find_quote(text, start) == next((at for at in quotes if at >= start), -1)
        if first == 0 or text[first - 1 : first] != b"\\":
            before = [at for at in quotes if first <= at < start]
            assert find_quote_before(text, start, first) == (before[-1] if before else -1)
