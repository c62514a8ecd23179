"""Buffers: a CUDA buffer has the layout of a host buffer. The CUDA runtime is simulated with host memory."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p
from typing import Any, Protocol

import numpy as np
import pytest

from dragoman.local_engine.runtime import memory
from dragoman.local_engine.runtime.memory import CudaBuffer, HostBuffer
from dragoman.local_engine.runtime.providers import ExecutionProvider, ProviderError


class Reference(Protocol):
    """What ctypes.byref returns."""

    _obj: Any


class FakeCudaRuntime:
    """The CUDA runtime API on host memory."""

    def __init__(self) -> None:
        self.device = -1
        self.blocks: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.status = 0

    def cudaSetDevice(self, index: int) -> int:
        self.device = index
        return self.status

    def cudaMalloc(self, pointer: Reference, size: c_size_t) -> int:
        block = ctypes.create_string_buffer(b"\xff" * size.value, size.value)
        pointer._obj.value = ctypes.addressof(block)
        self.blocks[ctypes.addressof(block)] = block
        return 0

    def cudaFree(self, pointer: c_void_p) -> int:
        del self.blocks[pointer.value or 0]
        return 0

    def cudaMemset(self, pointer: c_void_p, value: int, size: c_size_t) -> int:
        ctypes.memset(pointer, value, size.value)
        return 0

    def cudaMemcpy(self, target: c_void_p, source: c_void_p, size: c_size_t, kind: int) -> int:
        ctypes.memmove(target, source, size.value)
        return 0 if kind == 2 else 21

    def cudaMemcpy2D(
        self,
        target: c_void_p,
        target_pitch: c_size_t,
        source: c_void_p,
        source_pitch: c_size_t,
        width: c_size_t,
        height: c_size_t,
        kind: int,
    ) -> int:
        for line in range(height.value):
            ctypes.memmove(
                (target.value or 0) + line * target_pitch.value,
                (source.value or 0) + line * source_pitch.value,
                width.value,
            )
        return 0 if kind == 3 else 21

    def cudaMemGetInfo(self, free: Reference, total: Reference) -> int:
        free._obj.value, total._obj.value = 1000, 2000
        return 0

    def cudaDeviceSynchronize(self) -> int:
        return 0

    def cudaGetErrorString(self, status: int) -> bytes:
        return b"out of memory"


def test_cuda_buffers_have_the_layout_of_host_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = FakeCudaRuntime()
    monkeypatch.setattr(memory, "_load_cuda_runtime", lambda: runtime)
    shape = (3, 2, 5, 4)
    device, host = CudaBuffer(shape, np.float16, 1), HostBuffer(shape, np.float16)
    assert runtime.device == 1 and not device.read_rows(0, 3).any()
    values = np.arange(40, dtype=np.float16).reshape(shape[1:])
    ctypes.memmove(device.address(1), values.ctypes.data, values.nbytes)
    host.read_rows(1, 2)[0] = values
    for buffer in (device, host):
        buffer.copy_row(1, 2, 3)
    assert device.read_rows(0, 3).tobytes() == host.read_rows(0, 3).tobytes()
    assert memory.default_cache_bytes(ExecutionProvider("cuda", "CUDAExecutionProvider", 1)) == 800
    del device, buffer
    assert not runtime.blocks
    runtime.status = 2
    with pytest.raises(ProviderError, match=r"cudaMalloc failed on CUDA device 1: out of memory \(2\)"):
        CudaBuffer(shape, np.float16, 1)
