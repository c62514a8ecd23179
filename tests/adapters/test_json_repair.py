from __future__ import annotations

import pytest

from dragoman.adapters.json_repair import NO_NUMBER, NO_TEXT, parse_leniently
from dragoman.contract.json_types import JsonValue


@pytest.mark.parametrize(
    ("raw", "value", "reasons"),
    [
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}, []),
        (b'{"a":"\\ud83d"}', {"a": "�"}, [NO_TEXT]),
        (b'{"\\ud83d":"\\ude00\\ud83d\\ude00\\ud83d"}', {"�": "�😀�"}, [NO_TEXT]),
        (b'{"a":"\\\\ud83d \\ud83dx"}', {"a": "\\ud83d �x"}, [NO_TEXT]),
        (b'["\xf0\x9f"]', ["�"], [NO_TEXT]),
        (b'{"logprob":-Infinity,"b":NaN,"c":[NaN,-Infinity]}', {"logprob": -9999.0, "b": None, "c": [None, -9999.0]},
         [NO_NUMBER]),
        (b'{"NaN":"Infinity, NaN","a":1e999,"b":1e10}', {"NaN": "Infinity, NaN", "a": None, "b": 1e10}, [NO_NUMBER]),
        (b'{"token_logprob" : NaN,"x":"\\udc00"}', {"token_logprob": -9999.0, "x": "�"}, [NO_TEXT, NO_NUMBER]),
    ],
)  # fmt: skip
def test_what_servers_break_is_repaired(raw: bytes, value: JsonValue, reasons: list[str]) -> None:
    assert parse_leniently(raw) == (value, reasons)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"NaN}", b'{"a":"\\ud83d', b"Infinit", b'"\\ud83d" x', b"[" * 5000 + b"NaN"]
)
def test_other_texts_are_no_json(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_leniently(raw)
