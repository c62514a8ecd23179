"""Execution providers: CPU or CUDA. A request for unavailable CUDA is an error; nothing falls back silently.

If a provider fails, onnxruntime logs that on standard error and continues with the next one. Therefore
`session.open_session` checks which provider a new session really uses. onnxruntime and onnxruntime-gpu install into the
same directory; with both installed, CUDA is lost: https://github.com/microsoft/onnxruntime/issues/26996.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["CUDART", "GPU_INSTALL", "Device", "ExecutionProvider", "ProviderError", "cpu_provider", "select_provider"]

Device: TypeAlias = Literal["auto", "cuda", "cpu"]

WHEELS = ("onnxruntime", "onnxruntime-gpu")
CUDART = "libcudart.so.13"
GPU_INSTALL = (
    "`uv pip install '.[gpu]'` in the checkout of dragoman (with uv's environment there,"
    " `uv run --exact --no-default-groups --extra gpu dragoman serve`)"
)


class ProviderError(Exception):
    """The runtime or the device is missing. The message names the command or the library that helps."""


@dataclass(frozen=True, slots=True)
class ExecutionProvider:
    """An execution provider with its device and options. `note` says why `auto` selected it instead of CUDA."""

    device: Literal["cuda", "cpu"]
    name: str
    index: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    note: str | None = None


def select_provider(device: Device, index: int = 0) -> ExecutionProvider:
    """Select the provider for a device; `index` picks one of several CUDA devices. Raises ProviderError."""
    if device not in ("auto", "cuda", "cpu"):
        raise ProviderError(f'device "{device}" is not one of auto, cuda, cpu')
    _check_wheels()
    if device == "cpu":
        return cpu_provider()
    missing = _find_missing_cuda_part(index)
    if missing is None:
        # TF32 would round the factors of float32 products to ten bits; the arena grows by the requested size only
        options = {"device_id": index, "arena_extend_strategy": "kSameAsRequested", "use_tf32": 0}
        return ExecutionProvider("cuda", "CUDAExecutionProvider", index, options)
    if device == "cuda":
        raise ProviderError(f"device is cuda, but {missing}")
    return cpu_provider(f"no CUDA: {missing}")


def cpu_provider(note: str | None = None) -> ExecutionProvider:
    return ExecutionProvider("cpu", "CPUExecutionProvider", note=note)


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _check_wheels() -> None:
    found = [name for name in WHEELS if _is_installed(name)]
    if not found:
        raise ProviderError(
            "onnxruntime is not installed: `uv pip install '.[local]'` in the checkout of dragoman, or [gpu] for CUDA"
        )
    if len(found) > 1:
        raise ProviderError(
            "onnxruntime and onnxruntime-gpu are both installed, and each overwrites the other's files. To repair, run"
            f" `uv pip uninstall onnxruntime onnxruntime-gpu`, then {GPU_INSTALL}; [local] instead of [gpu] for the CPU"
        )


def _find_missing_cuda_part(index: int) -> str | None:
    """Say what is missing for CUDA: the wheel, the driver, a device or a library. None if nothing is missing."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return f"this onnxruntime is built without CUDA: `uv pip uninstall onnxruntime`, then {GPU_INSTALL}"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no NVIDIA driver is installed ({error})"
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return f"the NVIDIA driver reports no device (status {status})"
    if index >= count.value:
        return f"device_index is {index}, but the driver has {count.value} devices, counted from 0"
    onnxruntime.preload_dlls()  # includes cuDNN if it is installed; integer sums need it
    try:
        ctypes.CDLL(CUDART)
    except OSError as error:
        return f"CUDA 13's runtime is not installed ({error}): {GPU_INSTALL}"
    return None
