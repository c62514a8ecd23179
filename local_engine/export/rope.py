"""Rotary position embeddings: tables of cosines and sines by position, with linear and Llama 3 scaling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .spec import ModelSpec, RopeScaling

__all__ = ["rotary_tables"]


def rotary_tables(spec: ModelSpec, length: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The tables of cosines and sines, each (length, head_dim / 2)."""
    exponents = np.arange(0, spec.head_dim, 2, dtype=np.float32) / np.float32(spec.head_dim)
    frequencies = (1.0 / np.power(np.float64(spec.rope_theta), exponents)).astype(np.float32)
    if spec.rope_scaling is not None:
        frequencies = _scale_frequencies(frequencies, spec.rope_scaling)
    angles = np.arange(length, dtype=np.float32)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _scale_frequencies(frequencies: NDArray[np.float32], scaling: RopeScaling) -> NDArray[np.float32]:
    """Scale frequencies. llama3: low ones are divided by the factor, high ones kept, those between interpolated."""
    if scaling.kind == "linear":
        return (frequencies / scaling.factor).astype(np.float32)
    turns = scaling.original_max_positions * frequencies / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = np.clip((turns - low) / (high - low), 0, 1)
    blended: NDArray[np.float32] = ((1 - kept) * frequencies / scaling.factor + kept * frequencies).astype(np.float32)
    return blended
