"""The logits of a step, as the scheduler has them: on the host, or where the model left them (on_device)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .sampling import Chosen, Sampler, choose

__all__ = ["HostScores", "Mask", "Scores"]

Mask = NDArray[np.bool_]


class Scores(Protocol):
    """Logits of some rows, valid until the next step."""

    def choose(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[Chosen | None]:
        """One token per row; None where nothing may be chosen."""
        ...


@dataclass(frozen=True, slots=True)
class HostScores:
    """`logits` (rows, vocab)."""

    logits: NDArray[np.float32]

    def choose(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[Chosen | None]:
        return choose(self.logits, samplers, masks)
