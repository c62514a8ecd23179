"""Tables of cases: all rows are run, and those that fail are named."""

from __future__ import annotations

import inspect

import pytest

from tests.tables import for_each, sample_rows

NUMBERS = [1, 2, 3]


@for_each("factor", NUMBERS)
@for_each(("number", "text"), [(1, "one"), (2, "two"), (3, "three")])
def count_letters(number: int, text: str, factor: int, most: int) -> None:
    assert len(text) * factor < most


def test_rows_are_no_fixtures() -> None:
    assert [*inspect.signature(count_letters).parameters] == ["most"]
    count_letters(most=16)


def test_each_row_that_fails_is_named() -> None:
    with pytest.raises(ExceptionGroup, match="2 of 3 rows") as failed:
        count_letters(most=10)
    twice, thrice = failed.value.exceptions
    assert isinstance(twice, ExceptionGroup) and twice.__notes__ == ["row: {'factor': 2}"]
    assert [one.__notes__ for one in twice.exceptions] == [["row: {'number': 3, 'text': 'three'}"]]
    assert isinstance(thrice, ExceptionGroup) and len(thrice.exceptions) == 1


def test_an_empty_table_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="empty"):
        for_each("number", [])


def test_a_sample_has_the_first_row_of_so_many() -> None:
    assert [bool(row.marks) for row in sample_rows(range(5), 2)] == [False, True, False, True, False]
    assert [row.values for row in sample_rows([("a", 1)], 2)] == [("a", 1)]
