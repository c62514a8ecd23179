"""Memory for keys and values: on the host as numpy arrays, on a CUDA device as values of onnxruntime."""

from __future__ import annotations

import ctypes
import math
import os
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .providers import Provider, ProviderError

if TYPE_CHECKING:
    from onnxruntime import OrtValue

__all__ = ["Buffer", "allocate", "available"]

DEVICE_TO_DEVICE = 3


class Buffer(Protocol):
    """A tensor (slots, heads, length, width) at a fixed address."""

    def address(self, row: int) -> int: ...

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one row to another."""
        ...


def allocate(shape: tuple[int, int, int, int], dtype: type[np.floating[Any]], provider: Provider) -> Buffer:
    return HostBuffer(shape, dtype) if provider.device == "cpu" else CudaBuffer(shape, dtype, provider.index)


def available(provider: Provider) -> int:
    """Bytes that keys and values may take by default: a quarter of the host's memory, most of the free device's."""
    if provider.device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    status = ctypes.CDLL("libcudart.so.13").cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    if status:
        raise ProviderError(f"cudaMemGetInfo failed with status {status}")
    return free.value * 8 // 10


class HostBuffer:
    def __init__(self, shape: tuple[int, int, int, int], dtype: type[np.floating[Any]]) -> None:
        self._array = np.zeros(shape, dtype)  # pages are taken from the system when first written

    def address(self, row: int) -> int:
        return int(self._array.ctypes.data) + row * self._array.strides[0]

    def copy(self, source: int, target: int, length: int) -> None:
        self._array[target, :, :length] = self._array[source, :, :length]


class CudaBuffer:
    def __init__(self, shape: tuple[int, int, int, int], dtype: type[np.floating[Any]], index: int) -> None:
        from onnxruntime import OrtValue

        self._value: OrtValue = OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), "cuda", index)
        self._shape = shape
        self._item = np.dtype(dtype).itemsize

    def address(self, row: int) -> int:
        return int(self._value.data_ptr()) + row * math.prod(self._shape[1:]) * self._item

    def copy(self, source: int, target: int, length: int) -> None:
        """A strided copy on the device: each head's positions lie together."""
        _, heads, total, width = self._shape
        line = width * self._item
        pointers = (ctypes.c_void_p(self.address(row)) for row in (target, source))
        to, of = pointers
        size = ctypes.c_size_t
        runtime = ctypes.CDLL("libcudart.so.13")
        status = runtime.cudaMemcpy2D(
            to, size(total * line), of, size(total * line), size(length * line), size(heads), DEVICE_TO_DEVICE
        )
        status = status or runtime.cudaDeviceSynchronize()  # onnxruntime's own stream does not wait for this one
        if status:
            raise ProviderError(f"a copy on the device failed with status {status}")
