"""Counting characters as they arrive, without keeping the text."""

from __future__ import annotations

import sys

import pytest

from dragoman.adapters.text_buffer import CharacterCount


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
