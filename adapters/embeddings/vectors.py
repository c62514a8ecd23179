"""Converts vectors between lists of numbers and base64 of little-endian 32-bit floats.

Each function handles a whole vector at once, without a Python loop over its numbers. JSON cannot express NaN and
infinity, but base64 can, so both forms are checked.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from base64 import b64decode, b64encode
from typing import Any

__all__ = ["check_base64", "check_numbers", "decode_vector", "encode_vector"]

_NUMBERS = frozenset({float, int})


def decode_vector(packed: str) -> list[float]:
    """Decode a base64 text into its numbers, exactly. Raises ValueError unless it holds finite 32-bit floats."""
    return _unpack(packed).tolist()


def encode_vector(vector: list[Any]) -> str:
    """Encode numbers as base64; each becomes the nearest 32-bit float.

    Raises ValueError if a value is not a number, or is too large for a 32-bit float.
    """
    check_numbers(vector)
    try:
        packed = struct.pack(f"<{len(vector)}f", *vector)
    except (OverflowError, struct.error):
        raise ValueError("a number is too large for a 32-bit float") from None
    return b64encode(packed).decode()


def check_numbers(vector: list[Any]) -> int:
    """Check a list, and return its length. Raises ValueError unless all its values are numbers."""
    if not _NUMBERS.issuperset(map(type, vector)):
        raise ValueError("a value in the vector is not a number")
    return len(vector)


def check_base64(packed: str) -> int:
    """Check a base64 text, and return its number of values. Raises ValueError unless they are finite 32-bit floats."""
    return len(_unpack(packed))


def _unpack(packed: str) -> array[float]:
    try:
        raw = b64decode(packed, validate=True)
    except ValueError:
        raise ValueError("the vector is not valid base64") from None
    vector = array("f")
    if len(raw) % vector.itemsize:
        raise ValueError("the vector's base64 is not made of 32-bit floats")
    vector.frombytes(raw)
    if sys.byteorder == "big":
        vector.byteswap()
    if not math.isfinite(sum(vector)):  # 32-bit floats are too small to reach infinity together
        raise ValueError("a value in the vector is not finite")
    return vector
