"""How long and how to train."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """`seconds` to train, else `steps`. `rate` is the highest learning rate. A seed always draws the same questions."""

    steps: int = 8000
    seconds: float | None = None
    seed: int = 7
    rate: float = 4e-3
    threads: int = 1
