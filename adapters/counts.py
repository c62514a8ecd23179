"""Numbers that providers report: which of them can be a time or a count."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_count", "is_time"]

_LARGEST = 2**53
"""The integers up to here are the same in every JSON parser."""


def is_time(value: Any) -> TypeGuard[int | float]:
    """Seconds since 1970, or parts of them."""
    return isinstance(value, int | float) and 0 < value <= _LARGEST


def is_count(value: Any) -> TypeGuard[int | float]:
    """A whole number, if only by its value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST and not value % 1
