"""Weight-only quantization for MatMulNBits and GatherBlockQuantized: symmetric, one scale per block of a row.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MatMulNBits
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "Bits", "quantize"]

Bits: TypeAlias = Literal[4, 8]
BLOCK = 32


def quantize(
    matrix: NDArray[np.floating], bits: Bits, block: int = BLOCK
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantize a matrix (out, in) to codes (out, blocks, block * bits / 8) and scales (out, blocks).

    A code c means (c - 2**(bits-1)) * scale. The value farthest from zero is exact: the scale has its sign.
    """
    rows, columns = matrix.shape
    blocks = -(-columns // block)
    padded = np.zeros((rows, blocks * block), np.float32)
    padded[:, :columns] = matrix
    parts = padded.reshape(rows, blocks, block)
    farthest = np.take_along_axis(parts, np.abs(parts).argmax(-1)[..., None], -1)[..., 0]
    middle = 1 << (bits - 1)
    scales = (farthest / -middle).astype(np.float32)
    divisors = np.where(scales == 0, np.float32(1), scales)[..., None]
    codes = np.clip(np.rint(parts / divisors) + middle, 0, 2 * middle - 1).astype(np.uint8)
    if bits == 4:
        codes = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return codes, scales
