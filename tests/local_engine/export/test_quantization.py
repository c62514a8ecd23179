"""Weight-only quantization: the error of each value is limited."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.export.quantization import Bits, quantize


@given(st.integers(1, 5), st.integers(1, 100), st.sampled_from([4, 8]), st.integers(0, 2**31))
def test_quantized_values_are_within_half_a_step(rows: int, columns: int, bits: Bits, seed: int) -> None:
    matrix = np.random.RandomState(seed).standard_normal((rows, columns)).astype(np.float32)
    codes, scales = quantize(matrix, bits)
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:2], -1)
    back = ((codes.astype(np.float32) - (1 << (bits - 1))) * scales[..., None]).reshape(rows, -1)[:, :columns]
    steps = np.repeat(np.abs(scales), 32, -1)[:, :columns]
    assert (np.abs(back - matrix) <= steps * 1.001).all(), "only values opposite to the farthest value are clipped"
    opposite = np.sign(matrix) * np.sign(np.repeat(scales, 32, -1)[:, :columns]) > 0
    assert (np.abs(back - matrix) <= steps * 0.501)[~opposite].all()
