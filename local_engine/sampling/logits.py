"""The logits of a step. They are on the host, or stay on the model's device (device_logits)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .sampler import SampledToken, Sampler, sample_tokens

__all__ = ["HostLogits", "Logits", "Mask"]

Mask = NDArray[np.bool_]


class Logits(Protocol):
    """The logits of some rows, valid until the next step."""

    def sample(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[SampledToken | None]:
        """Sample one token per row. A row without an allowed token gives None."""
        ...


@dataclass(frozen=True, slots=True)
class HostLogits:
    """Logits in host memory: `logits` (rows, vocab)."""

    logits: NDArray[np.float32]

    def sample(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[SampledToken | None]:
        return sample_tokens(self.logits, samplers, masks)
