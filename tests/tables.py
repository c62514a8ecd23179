"""Tables of cases. A row of `pytest.mark.parametrize` is a test of its own, which costs milliseconds in each worker
before it begins; `for_each` runs all rows of a large table in one test, and names those that fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet

from dragoman.contract.json_types import JsonValue

__all__ = ["for_each", "sample_rows"]

Test: TypeAlias = Callable[..., None]


def for_each(names: str | tuple[str, ...], rows: Iterable[JsonValue]) -> Callable[[Test], Test]:
    """Call a test with each row, as `pytest.mark.parametrize` would, but as one test. It fails with an ExceptionGroup:
    each exception says which row it is of."""
    several = not isinstance(names, str)
    keys = tuple(names) if several else (names,)
    cells = [dict(zip(keys, row if several else (row,), strict=True)) for row in rows]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: JsonValue) -> None:
            failures = [*_list_failures(test, cells, fixtures)]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cells)} rows", failures)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    assert cells, "the table is empty"
    return decorate


def _list_failures(
    test: Test, cells: list[dict[str, JsonValue]], fixtures: dict[str, JsonValue]
) -> Iterable[Exception]:
    for cell in cells:
        try:
            test(**cell, **fixtures)
        except Exception as error:  # noqa: BLE001 - reported with the others
            error.add_note(f"row: {cell!r:.500}")
            yield error


def sample_rows(rows: Iterable[JsonValue], every: int) -> list[ParameterSet]:
    """The rows for `pytest.mark.parametrize`: one of so many in the default run, the others only with -m heavy."""
    return [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=[pytest.mark.heavy] if number % every else [])
        for number, row in enumerate(rows)
    ]
