"""Checks of the numbers that providers report: can it be a time, can it be a count?"""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_count", "is_time"]

_LARGEST = 2**53
"""The integers up to here are the same in every JSON parser."""


def is_time(value: Any) -> TypeGuard[int | float]:
    """Whether the value can be a Unix time in seconds, with or without a fraction."""
    return isinstance(value, int | float) and 0 < value <= _LARGEST


def is_count(value: Any) -> TypeGuard[int | float]:
    """Whether the value is a whole number of at least 0; 3.0 is one too."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST and not value % 1
