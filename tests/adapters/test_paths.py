from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.paths import format_path, lookup, parse_path

KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("messages", 0, "content"), "messages[0].content"),
        (("response_format", "json_schema"), "response_format.json_schema"),
        ((0, "a"), "[0].a"),
        ((), ""),
    ],
)
def test_dotted(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text


def test_parse_reads_positions_either_way() -> None:
    assert parse_path("messages.0.content") == parse_path("messages[0].content") == ("messages", 0, "content")
    assert parse_path("$.tools[3]") == ("tools", 3)


@given(st.lists(st.one_of(KEYS, st.integers(0, 99))).map(tuple))
def test_parse_undoes_dotted(path: tuple[str | int, ...]) -> None:
    assert parse_path(format_path(path)) == path


def test_lookup_leads_nowhere_quietly() -> None:
    body = {"messages": [{"content": "x"}]}
    assert lookup(body, ("messages", 0, "content")) == "x"
    assert lookup(body, ("messages", 3, "content")) is None
    assert lookup(body, ("messages", "a")) is None
