"""Strings are joined in short calls, with the same result as by `str.join`."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import joined_strings
from dragoman.adapters.joined_strings import join_strings

LETTERS = ("", "a", "\x7f", "é", "\x80", "ÿ", "Ā", "€", "\ud83d", "\uffff", "\U00010000", "😀")


@given(st.lists(st.text(st.sampled_from("".join(LETTERS)), max_size=9), max_size=9))
def test_any_strings_are_joined(parts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_strings, "_LARGE", 0)
        found = join_strings(parts)
    whole = "".join(parts)
    assert (found, hash(found), len(found), list(found)) == (whole, hash(whole), len(whole), list(whole))
    new = "".join([*parts, "", ""])  # of one part it would be that part, which may hold its UTF-8
    assert sys.getsizeof(found) == sys.getsizeof(new)  # it is of the same kind


@pytest.mark.parametrize("letter", LETTERS[1:])
def test_a_large_string_is_an_ordinary_one(letter: str) -> None:
    parts = [letter * 70_000] * 20
    whole = join_strings(parts)
    assert whole == letter * 1_400_000
    assert {whole: 1}[letter * 1_400_000] == 1
    assert whole + "!" == letter * 1_400_000 + "!"


def test_no_call_is_longer_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    copy, sizes = joined_strings._copy, []

    def watch(*arguments: Any) -> int:
        sizes.append(copied := copy(*arguments))
        return int(copied)

    monkeypatch.setattr(joined_strings, "_copy", watch)
    join_strings(["a" * 70_000] * 20)
    assert sizes == [70_000] * 20
