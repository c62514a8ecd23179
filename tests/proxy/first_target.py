"""A random generator that makes the choice of a target predictable."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

__all__ = ["FirstTarget"]

T = TypeVar("T")


class FirstTarget(Random):
    """Draws the first target that is left."""

    def choices(self, population: Sequence[T], *args: object, **kwargs: object) -> list[T]:  # type: ignore[override]
        return [population[0]]
