"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Trains for `seconds` if set, else for `steps`. `rate` is the peak learning rate; `seed` fixes the questions."""

    steps: int = 8000
    seconds: float | None = None
    seed: int = 7
    rate: float = 4e-3
    threads: int = 1
