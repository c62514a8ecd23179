"""How the heap of glibc gives memory back to the system. With another C library nothing is changed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["return_in_small_steps", "return_large_blocks"]

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
_BLOCK = 4 * 1024 * 1024
_STEP, _SMALL_STEP = 16 * 1024 * 1024, 1024 * 1024

_mallopt = getattr(ctypes.CDLL(None), "mallopt", None)


def return_large_blocks() -> None:
    """Let glibc map blocks of 4 MiB and more one by one. It would raise that limit to 32 MiB by itself, and the heap
    would keep what bodies once took."""
    _set(_MMAP_THRESHOLD, _BLOCK)
    _set(_TRIM_THRESHOLD, _STEP)


@contextmanager
def return_in_small_steps() -> Iterator[None]:
    """Memory at the end of the heap that is freed meanwhile goes back 1 MiB at a time. Usually it is 16 MiB, because
    the next body needs them again; that takes milliseconds, in which no other thread runs."""
    _set(_TRIM_THRESHOLD, _SMALL_STEP)
    try:
        yield
    finally:
        _set(_TRIM_THRESHOLD, _STEP)


def _set(parameter: int, value: int) -> None:
    if _mallopt is not None:
        _mallopt(parameter, value)
