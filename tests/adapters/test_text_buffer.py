"""Texts in parts are joined, or their characters are counted, as they arrive."""

from __future__ import annotations

import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.text_buffer import CharacterCount, TextBuffer

TEXTS = st.lists(st.tuples(st.booleans(), st.text(max_size=5)), max_size=12)


@pytest.mark.parametrize(
    ("fragment", "characters"), [(b" word", 5), ("é".encode(), 1), (b"\\n", 1), (b'\\"\\u00e9', 2), (b"", 0)]
)
def test_characters_of_fragments_are_counted(fragment: bytes, characters: int) -> None:
    count = CharacterCount()
    for number in range(100):
        count.add_fragments([fragment])
        assert number % 7 or count.total() == (number + 1) * characters
    count.add("two")
    assert count.total() == 100 * characters + 3


def test_few_fragments_are_kept() -> None:
    fragment = b" a token, kept in one object" * 2
    before, count, most = sys.getrefcount(fragment), CharacterCount(), 0
    for _ in range(1_000):
        count.add_fragments([fragment])
        most = max(most, sys.getrefcount(fragment) - before)
    assert most <= 32
    count.add_fragments([fragment] * 60)  # the events of one read
    assert sys.getrefcount(fragment) == before


@given(TEXTS, st.integers(1, 60))
def test_texts_and_fragments_are_joined_in_their_order(texts: list[tuple[bool, str]], times: int) -> None:
    """As often as it takes to join them on the way."""
    buffer, count = TextBuffer(), CharacterCount()
    for is_fragment, text in texts * times:
        if is_fragment:
            fragment = orjson.dumps(text)[1:-1]
            buffer.add_fragments([fragment])
            count.add_fragments([fragment])
        else:
            buffer.add(text)
            count.add(text)
    whole = "".join(text for _, text in texts) * times
    assert buffer.text() == whole
    assert count.total() == len(whole)
    assert bool(buffer) == bool(texts)
