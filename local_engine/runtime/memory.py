"""Memory for keys, values and logits: numpy arrays on the host, cudaMalloc on a CUDA device.

Device memory is allocated once, at its exact size, and not from onnxruntime's arena, which grows by doubling.
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

from .providers import CUDART, ExecutionProvider, ProviderError

__all__ = ["Buffer", "allocate", "default_cache_bytes"]

TO_HOST, ON_DEVICE = 2, 3


class Buffer(Protocol):
    """A tensor at a fixed address, initially zero. Its first dimension is the row."""

    def address(self, row: int) -> int:
        """The address of a row."""
        ...

    def read_rows(self, low: int, high: int) -> NDArray[Any]:
        """Read rows low to high (exclusive) to the host."""
        ...

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one row to another, in a tensor (rows, heads, length, width)."""
        ...


def allocate(shape: tuple[int, ...], dtype: type[np.floating[Any]], provider: ExecutionProvider) -> Buffer:
    """Allocate a buffer. Raises ProviderError if the device has not enough memory."""
    return HostBuffer(shape, dtype) if provider.device == "cpu" else CudaBuffer(shape, dtype, provider.index)


def default_cache_bytes(provider: ExecutionProvider) -> int:
    """The default size of the KV cache: a quarter of the host's memory, or four fifths of the free device memory.

    The rest of a device is left to onnxruntime's arena, for the intermediate results of prefill.
    """
    if provider.device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    _call_cuda(provider.index, "cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value * 8 // 10


class HostBuffer:
    """A buffer in host memory."""

    def __init__(self, shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> None:
        self._array = np.zeros(shape, dtype)  # the system allocates pages on their first write

    def address(self, row: int) -> int:
        return int(self._array.ctypes.data) + row * self._array.strides[0]

    def read_rows(self, low: int, high: int) -> NDArray[Any]:
        return self._array[low:high]

    def copy_row(self, source: int, target: int, length: int) -> None:
        self._array[target, :, :length] = self._array[source, :, :length]


class CudaBuffer:
    """A buffer in the memory of a CUDA device."""

    def __init__(self, shape: tuple[int, ...], dtype: type[np.floating[Any]], index: int) -> None:
        self._shape = shape
        self._type = np.dtype(dtype)
        self._index = index
        self._row_bytes = math.prod(shape[1:]) * self._type.itemsize
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t(shape[0] * self._row_bytes)
        _call_cuda(index, "cudaMalloc", ctypes.byref(pointer), size)
        weakref.finalize(self, _call_cuda, index, "cudaFree", pointer).atexit = False
        _call_cuda(index, "cudaMemset", pointer, 0, size)
        self._address = int(pointer.value or 0)

    def address(self, row: int) -> int:
        return self._address + row * self._row_bytes

    def read_rows(self, low: int, high: int) -> NDArray[Any]:
        found = np.empty((high - low, *self._shape[1:]), self._type)
        target, source = ctypes.c_void_p(found.ctypes.data), ctypes.c_void_p(self.address(low))
        _call_cuda(self._index, "cudaMemcpy", target, source, ctypes.c_size_t(found.nbytes), TO_HOST)
        return found

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Copy on the device, strided, since the positions of each head are contiguous."""
        _, heads, total, width = self._shape
        line = width * self._type.itemsize
        to, of = (ctypes.c_void_p(self.address(row)) for row in (target, source))
        pitch, wide, high = (ctypes.c_size_t(size) for size in (total * line, length * line, heads))
        _call_cuda(self._index, "cudaMemcpy2D", to, pitch, of, pitch, wide, high, ON_DEVICE)
        _call_cuda(self._index, "cudaDeviceSynchronize")  # onnxruntime's stream does not wait for this copy


def _call_cuda(index: int, name: str, *arguments: Any) -> None:
    """Call a function of the CUDA runtime on a device. Raises ProviderError."""
    runtime = _load_cuda_runtime()
    status = runtime.cudaSetDevice(index) or getattr(runtime, name)(*arguments)
    if status:
        reason = runtime.cudaGetErrorString(status).decode()
        raise ProviderError(f"{name} failed on CUDA device {index}: {reason} ({status})")


@cache
def _load_cuda_runtime() -> Any:
    runtime = ctypes.CDLL(CUDART)
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    return runtime
