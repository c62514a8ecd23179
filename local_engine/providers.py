"""Where a model runs. A wish for CUDA is met or refused, never turned into the CPU in silence.

onnxruntime logs a failed provider on standard error and goes on with the next one, so what a session really runs on is
looked up after it is made (`session.open_session`). onnxruntime and onnxruntime-gpu write the same directory, and with
both installed CUDA disappears: https://github.com/microsoft/onnxruntime/issues/26996.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["CUDART", "GPU", "Device", "Provider", "ProviderError", "choose", "cpu"]

Device: TypeAlias = Literal["auto", "cuda", "cpu"]

WHEELS = ("onnxruntime", "onnxruntime-gpu")
CUDART = "libcudart.so.13"
GPU = "`uv pip install 'dragoman[gpu]'` (in a checkout `uv run --exact --no-default-groups --extra gpu dragoman serve`)"


class ProviderError(Exception):
    """The runtime or the device is not there; the message has the command or the library that would help."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A device with the options of its execution provider. `note` says why `auto` came to it, if not by choice."""

    device: Literal["cuda", "cpu"]
    name: str
    index: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    note: str | None = None


def choose(device: Device, index: int = 0) -> Provider:
    """The provider for a wish. Raises ProviderError."""
    if device not in ("auto", "cuda", "cpu"):
        raise ProviderError(f'device "{device}" is not one of auto, cuda, cpu')
    _check_wheels()
    if device == "cpu":
        return cpu()
    lack = _cuda_lack(index)
    if lack is None:
        # TF32 would round the factors of float32 products to ten bits; the arena grows by what is asked for
        options = {"device_id": index, "arena_extend_strategy": "kSameAsRequested", "use_tf32": 0}
        return Provider("cuda", "CUDAExecutionProvider", index, options)
    if device == "cuda":
        raise ProviderError(f"device is cuda, but {lack}")
    return cpu(f"no CUDA: {lack}")


def cpu(note: str | None = None) -> Provider:
    return Provider("cpu", "CPUExecutionProvider", note=note)


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _check_wheels() -> None:
    found = [name for name in WHEELS if _installed(name)]
    if not found:
        raise ProviderError("onnxruntime is not installed: `uv pip install 'dragoman[local]'`, or [gpu] for CUDA")
    if len(found) > 1:
        raise ProviderError(
            "onnxruntime and onnxruntime-gpu are both installed, and each overwrites the other's files. Repair it with"
            f" `uv pip uninstall onnxruntime onnxruntime-gpu`, then {GPU}; [local] instead of [gpu] for the CPU"
        )


def _cuda_lack(index: int) -> str | None:
    """What is missing for CUDA: the wheel, the driver, a device or a library. None if nothing is."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return f"this onnxruntime has no CUDA in it: `uv pip uninstall onnxruntime`, then {GPU}"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"there is no NVIDIA driver ({error})"
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return f"the NVIDIA driver reports no device (status {status})"
    if index >= count.value:
        return f"device_index is {index}, and the driver counts {count.value} devices, from 0"
    onnxruntime.preload_dlls()  # cuDNN too where it is installed: integer sums need it
    try:
        ctypes.CDLL(CUDART)
    except OSError as error:
        return f"CUDA 13's runtime is not installed ({error}): {GPU}"
    return None
