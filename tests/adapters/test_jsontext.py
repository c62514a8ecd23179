from __future__ import annotations

import json
import re
from typing import NoReturn

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import MAX_DEPTH, SYNTAX_CODES, read_any, read_object, read_plain_object
from dragoman.contract.json_types import JsonValue
from tests.adapters.step_count import count_steps
from tests.tables import for_each


def refused(raw: bytes) -> Fault:
    with pytest.raises(Fault) as caught:
        read_object(raw)
    fault = caught.value
    assert (fault.kind, fault.status) == ("invalid_request", 400)
    return fault


@for_each(
    ("raw", "code", "words"),
    [
        (b"", "empty_body", "body is empty"),
        (b" \r\n\t", "empty_body", "body is empty"),
        (b"\xef\xbb\xbf", "empty_body", "body is empty"),
        (b'{"a":', "invalid_json", "line 1, column 6 (byte 5)"),
        (b'{"a": 1}}', "invalid_json", "line 1, column 9 (byte 8)"),
        (b'{"\xc3\xa9": 1,\n "b\xc3\xa9" : x}', "invalid_json", "line 2, column 9 (byte 19)"),
        (b'\xef\xbb\xbf{"\xc3\xa9": 1,\n "b\xc3\xa9" : x}', "invalid_json", "line 2, column 9 (byte 22)"),
        (b"hello", "invalid_json", "line 1, column 1 (byte 0)"),
        (b'{"a": NaN}', "invalid_json", "NaN is not a JSON value, at line 1, column 7 (byte 6)"),
        (b'{"a": Infinity}', "invalid_json", "Infinity is not a JSON value, at line 1, column 7 (byte 6)"),
        (b'{"a": -Infinity}', "invalid_json", "Infinity is not a JSON value, at line 1, column 8 (byte 7)"),
        (b"[]", "invalid_type", "expected object, got array"),
        (b'"x"', "invalid_type", "expected object, got string"),
        (b"null", "invalid_type", "expected object, got null"),
        (b"1", "invalid_type", "expected object, got integer"),
        (b"1.5", "invalid_type", "expected object, got number"),
        (b"true", "invalid_type", "expected object, got boolean"),
        (b'{"model": "a", "model": "b"}', "duplicate_key", "key model more than once"),
        (b'{"a": "\\ud800"}', "invalid_unicode", "line 1, column 8 (byte 7)"),
        (b'{"a": "\\udc00"}', "invalid_unicode", "surrogate"),
        (b'{"a": "\xff"}', "invalid_utf8", "0xff at byte 7"),
        (b'\xef\xbb\xbf{"a": "\xff"}', "invalid_utf8", "0xff at byte 10"),
        (b'{"a": "\xed\xa0\x80"}', "invalid_utf8", "at byte 7"),
        ('{"a": 1}'.encode("utf-16"), "invalid_utf8", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "invalid_utf8", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-be"), "invalid_utf8", "UTF-16"),
        ('{"a": 1}'.encode("utf-32"), "invalid_utf8", "UTF-16 or UTF-32"),
    ],
)
def test_bad_bodies(raw: bytes, code: str, words: str) -> None:
    fault = refused(raw)
    assert fault.code == code
    assert words in fault.message
    assert code in SYNTAX_CODES or code == "invalid_type"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b'{"a": {"b": [1, {"c": 1, "c": 2}]}}', ("a", "b", 1, "c")),
        (b'{"a": 1, "\\u0061": 2}', ("a",)),
        (b'{"a" : 1, "a": 2, "b" : "\\":"}', ("a",)),
        (b'{"a"\n:1,"a":2}', ("a",)),
        (b'{"a\\\\":1,"a\\\\":2,"b":"\\":"}', ("a\\",)),
        (b'{"a\\"":1,"a\\"":2,"b":"\\":"}', ('a"',)),
        (b'{"a":{"x":1,"x":2},"a":3}', ("a", "x")),
        (b'{"a":[{}, [1, 2], {"b": "\\",", "b": []}]}', ("a", 2, "b")),
        (b'{"a":[1, 2, {"c": 3}], "b": {"b": 1}, "b" : 4}', ("b",)),
        (b'{"":1,"":2}', ("",)),
    ],
)
def test_duplicate_keys_are_found_with_their_path(raw: bytes, path: tuple[str | int, ...]) -> None:
    fault = refused(raw)
    assert (fault.code, fault.path) == ("duplicate_key", path)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_both_places_of_a_duplicate_key_are_named(mark: bytes) -> None:
    raw = mark + '{"é": 1, "a" : {"b": 1,\n  "b": 2}}'.encode()
    fault = refused(raw)
    first, second = (raw.index(b'"b"'), raw.rindex(b'"b"'))
    assert f"at line 1, column 17 (byte {first}) and at line 2, column 3 (byte {second})" in fault.message
    assert "a.b" in fault.message


@given(st.lists(st.text(max_size=3), min_size=1, max_size=5), st.text(max_size=3), st.booleans())
def test_any_duplicate_key_is_found(keys: list[str], twice: str, ascii_only: bool) -> None:
    names = [*dict.fromkeys(keys), twice]
    text = ", ".join(f"{json.dumps(name, ensure_ascii=ascii_only)} : [{{}}]" for name in names)
    raw = f"{{{text}}}".encode()
    if len(set(names)) == len(names):
        assert read_object(raw) == {name: [{}] for name in names}
        return
    fault = refused(raw)
    assert (fault.code, fault.path) == ("duplicate_key", (twice,))
    places = [int(number) for number in re.findall(r"\(byte (\d+)\)", fault.message)]
    assert [json.JSONDecoder().raw_decode(raw[place:].decode())[0] for place in places] == [twice, twice]


@pytest.mark.parametrize(
    ("number", "ok"),
    [
        (str(2**64 - 1), True),
        (str(-(2**63)), True),
        ("1e300", True),
        ("1e30", True),
        ("123456789012345678901234567890.5", True),
        (str(2**64), False),
        (str(-(2**63) - 1), False),
        ("9" * 5000, False),
        ("-" + "9" * 5000, False),
        ("1e999", False),
        ("-1e999", False),
    ],
)
def test_numbers(number: str, ok: bool) -> None:
    raw = f'{{"a": [0, {{"b": {number}}}]}}'.encode()
    if ok:
        assert read_object(raw) == json.loads(raw)
        return
    fault = refused(raw)
    assert (fault.code, fault.path) == ("number_out_of_range", ("a", 1, "b"))
    assert "a[1].b" in fault.message
    assert len(fault.message) < 160


def test_a_number_out_of_range_in_a_text_that_is_wrong_elsewhere() -> None:
    fault = refused(b'{"a": 1e999, oops')
    assert (fault.code, fault.path) == ("number_out_of_range", ())
    assert "1e999 at line 1, column 7 (byte 6)" in fault.message


@pytest.mark.parametrize(("levels", "ok"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (1000, False), (5000, False)])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth(levels: int, ok: bool, opening: str, closing: str) -> None:
    raw = ('{"a":' + opening * (levels - 1) + "0" + closing * (levels - 1) + "}").encode()
    if ok:
        assert read_object(raw) == json.loads(raw)
        return
    fault = refused(raw)
    assert fault.code == "json_too_deep"
    assert "128" in fault.message


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"])
def test_great_depth_is_refused_in_few_steps(raw: bytes) -> None:
    assert refused(raw).code == "json_too_deep"
    assert count_steps(lambda: refused(raw)) < 500


def test_a_byte_order_mark_is_skipped() -> None:
    assert read_object(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert read_any(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


LONG, DIGITS = b"s" * 500, b"9" * 500


@pytest.mark.parametrize(
    "raw",
    [
        b'{"%b": 1, "%b": 2}' % (LONG, LONG),
        b'{"%b": 1e999}' % LONG,
        b'{"a": %b}' % LONG,
        b'{"a": 1%b}' % LONG,
        LONG,
        b'{"a": %b}' % DIGITS,
        b'{"a": %b, x}' % DIGITS,
    ],
)
def test_messages_echo_little(raw: bytes) -> None:
    message = refused(raw).message
    assert "s" * 41 not in message
    assert "9" * 42 not in message


def test_upstream_text_is_taken_as_it_comes() -> None:
    assert read_any(b'["a", {"a": 1, "a": 2}]') == ["a", {"a": 2}]
    for broken in (b"", b"<html>", b'{"a":', b"[" * 5000, b"\xff"):
        with pytest.raises(orjson.JSONDecodeError):
            read_any(broken)


KEYS = st.sampled_from(["a", "b", ":", '"', '":', "\\", 'x\\":', " :", "é", ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : "), (",", "\n:")])
)
def test_proper_bodies_are_read_as_the_standard_library_reads_them(
    body: JsonValue, separators: tuple[str, str]
) -> None:
    raw = json.dumps(body, separators=separators).encode()
    assert read_object(raw) == body


def twice(pairs: list[tuple[str, JsonValue]]) -> JsonValue:
    if len(dict(pairs)) != len(pairs):
        raise LookupError
    return dict(pairs)


@given(st.lists(st.tuples(KEYS, KEYS, st.sampled_from([":", " :", "\t:", ": "])), max_size=4))
@example([("\\", "a", ":"), ("\\", '":', ":")])
def test_no_duplicate_escapes(members: list[tuple[str, str, str]]) -> None:
    raw = "{" + ",".join(json.dumps(key) + colon + json.dumps(value) for key, value, colon in members) + "}"
    try:
        wanted = json.loads(raw, object_pairs_hook=twice)
    except LookupError:
        assert refused(raw.encode()).code == "duplicate_key"
    else:
        assert read_object(raw.encode()) == wanted


@given(st.binary(max_size=40) | st.text('{}[]":,01eE+-.\\unaN \n', max_size=30).map(str.encode))
def test_any_bytes_give_an_object_or_a_fault(raw: bytes) -> None:
    try:
        assert isinstance(read_object(raw), dict)
    except Fault as fault:
        assert fault.code in SYNTAX_CODES | {"invalid_type"}
        assert fault.message


def test_a_compact_body_needs_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> NoReturn:
        raise AssertionError("looked twice")

    monkeypatch.setattr("dragoman.adapters.jsontext._check_exactly", never)
    assert read_object(b'{"a":[1,"\xc3\xa9",0.5,null],"b":{"c":true}}') == {"a": [1, "é", 0.5, None], "b": {"c": True}}


@pytest.mark.parametrize("raw", [b'{"a":1,"a":1}', b'{"a":100000000000000000000}', b'{"a":{"b":1,"b":2},"c":1e5}'])
def test_a_compact_body_with_a_flaw_gets_one(raw: bytes) -> None:
    with pytest.raises(Fault):
        read_object(raw)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":[{"\\u0062":1,"b":[]}]}', "duplicate_key"),
        (b'{"a":[[123456789012345678901]]}', "number_out_of_range"),
        (b'{ "a\\\\":[{"b":":{","c":0},"\\"a:",[[]],1.5, 18446744073709551615],"d":{}}', None),
    ],
)
def test_a_large_text_is_not_written_to_be_checked(
    raw: bytes, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.adapters.jsontext._LARGE", 0)
    monkeypatch.setattr("dragoman.adapters.jsontext._is_spelled_differently", None)
    if code is None:
        assert read_object(raw) == json.loads(raw)
    else:
        assert refused(raw).code == code


MEMBERS = (
    '"a":1',
    '"b" : [{}, "x"]',
    '"\\u0061":"\\u00e9"',
    '"c":1e400',
    '"c":123456789012345678901',
    '"d":0.1234567890123456789',
)
MEMBERS += ('"e":{"a":1,"a":2}', '"f":"{[,:"', '"g":' + "[" * 130 + "]" * 130, "oops", '"h":[' + "[]," * 30 + "0]")


@given(st.lists(st.sampled_from(MEMBERS), max_size=4), st.sampled_from(["{%s}", "{ %s }", "[%s]", "{%s", "{%s}\n"]))
def test_a_plain_object_is_what_read_object_gives(members: list[str], frame: str) -> None:
    raw = (frame % ",".join(members)).encode()
    found = read_plain_object(raw, 40)
    try:
        value = read_object(raw, 40)
    except Fault:
        assert found is None
    else:
        assert found is None or found == (value, orjson.dumps(value))


@pytest.mark.parametrize("raw", [b'{"a":1}', b'{ "a" : "\\u00e9 {\\"" }', b'{"a": [1.5, -2e3, null], "b": {}}\n'])
def test_what_clients_send_is_plain(raw: bytes) -> None:
    value = json.loads(raw)
    assert read_plain_object(raw, 40) == read_plain_object(raw, None) == (value, orjson.dumps(value))
