"""Paths into JSON values."""

from __future__ import annotations

import pytest

from dragoman.contract.json_path import ABSENT, find_value, parse_path

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
def test_path_leads_to_its_value(path: str, expected: object) -> None:
    assert find_value(BODY, path) == expected


@pytest.mark.parametrize("path", ["a[", "a[x]", "a]b", "a..[0]"])
def test_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(path)
