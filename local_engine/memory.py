"""Memory for keys, values and logits: on the host as numpy arrays, on a CUDA device by CUDA's own calls.

Device memory is asked for at its exact size, once, and not from onnxruntime's arena, which grows by doubling.
"""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .providers import CUDART, Provider, ProviderError

__all__ = ["Buffer", "allocate", "available"]

TO_HOST, ON_DEVICE = 2, 3


class Buffer(Protocol):
    """A tensor of zeros at a fixed address, whose first dimension counts rows."""

    def address(self, row: int) -> int: ...

    def rows(self, low: int, high: int) -> NDArray[Any]:
        """Rows low to high, on the host."""
        ...

    def copy(self, source: int, target: int, length: int) -> None:
        """In a tensor (rows, heads, length, width): copy the first `length` positions of one row to another."""
        ...


def allocate(shape: tuple[int, ...], dtype: type[np.floating[Any]], provider: Provider) -> Buffer:
    """Raises ProviderError where a device has no room."""
    return HostBuffer(shape, dtype) if provider.device == "cpu" else CudaBuffer(shape, dtype, provider.index)


def available(provider: Provider) -> int:
    """Bytes that keys and values may take by default: a quarter of the host's memory, most of the free device's.

    The rest of a device is for onnxruntime's own arena: what a piece of a prompt needs on its way.
    """
    if provider.device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    _cuda(provider.index, "cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value * 8 // 10


class HostBuffer:
    def __init__(self, shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> None:
        self._array = np.zeros(shape, dtype)  # pages are taken from the system when first written

    def address(self, row: int) -> int:
        return int(self._array.ctypes.data) + row * self._array.strides[0]

    def rows(self, low: int, high: int) -> NDArray[Any]:
        return self._array[low:high]

    def copy(self, source: int, target: int, length: int) -> None:
        self._array[target, :, :length] = self._array[source, :, :length]


class CudaBuffer:
    def __init__(self, shape: tuple[int, ...], dtype: type[np.floating[Any]], index: int) -> None:
        self._shape = shape
        self._type = np.dtype(dtype)
        self._index = index
        self._row_bytes = math.prod(shape[1:]) * self._type.itemsize
        place, size = ctypes.c_void_p(), ctypes.c_size_t(shape[0] * self._row_bytes)
        _cuda(index, "cudaMalloc", ctypes.byref(place), size)
        weakref.finalize(self, _cuda, index, "cudaFree", place).atexit = False
        _cuda(index, "cudaMemset", place, 0, size)
        self._address = int(place.value or 0)

    def address(self, row: int) -> int:
        return self._address + row * self._row_bytes

    def rows(self, low: int, high: int) -> NDArray[Any]:
        found = np.empty((high - low, *self._shape[1:]), self._type)
        target, source = ctypes.c_void_p(found.ctypes.data), ctypes.c_void_p(self.address(low))
        _cuda(self._index, "cudaMemcpy", target, source, ctypes.c_size_t(found.nbytes), TO_HOST)
        return found

    def copy(self, source: int, target: int, length: int) -> None:
        """A strided copy on the device: each head's positions lie together."""
        _, heads, total, width = self._shape
        line = width * self._type.itemsize
        to, of = (ctypes.c_void_p(self.address(row)) for row in (target, source))
        pitch, wide, high = (ctypes.c_size_t(size) for size in (total * line, length * line, heads))
        _cuda(self._index, "cudaMemcpy2D", to, pitch, of, pitch, wide, high, ON_DEVICE)
        _cuda(self._index, "cudaDeviceSynchronize")  # onnxruntime's own stream does not wait for this one


def _cuda(index: int, name: str, *arguments: Any) -> None:
    """A call of CUDA's runtime on a device. Raises ProviderError."""
    runtime = _runtime()
    status = runtime.cudaSetDevice(index) or getattr(runtime, name)(*arguments)
    if status:
        reason = runtime.cudaGetErrorString(status).decode()
        raise ProviderError(f"{name} failed on CUDA device {index}: {reason} ({status})")


@cache
def _runtime() -> Any:
    runtime = ctypes.CDLL(CUDART)
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    return runtime
