"""ToolSelection a device: what is installed, what the driver script, and what a session really runs on."""

from __future__ import annotations

import ctypes
import importlib.metadata
from typing import Protocol

import onnxruntime
import pytest

from dragoman.local_engine.runtime.providers import ExecutionProvider, ProviderError, select_provider

CUDA = ExecutionProvider("cuda", "CUDAExecutionProvider")


def set_wheels(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> str:
        if name not in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return name

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


class Reference(Protocol):
    """What `ctypes.byref` gives."""

    _obj: ctypes.c_int


def simulate_cuda(monkeypatch: pytest.MonkeyPatch, devices: int = 1) -> None:
    class Driver:
        """A CUDA driver with some devices."""

        def cuInit(self, flags: int) -> int:
            return 0

        def cuDeviceGetCount(self, count: Reference) -> int:
            count._obj.value = devices
            return 0

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda **_: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())


def test_a_missing_onnxruntime_is_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    set_wheels(monkeypatch)
    with pytest.raises(ProviderError, match=r"uv pip install '\.\[local\]'"):
        select_provider("cpu")


def test_two_onnxruntimes_are_an_error_with_the_repair_command(monkeypatch: pytest.MonkeyPatch) -> None:
    set_wheels(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    for device in ("auto", "cuda", "cpu"):
        with pytest.raises(ProviderError, match="`uv pip uninstall onnxruntime onnxruntime-gpu`, then `uv pip install"):
            select_provider(device)


def test_an_unknown_device_is_rejected() -> None:
    with pytest.raises(ProviderError, match='"gpu" is not one of auto, cuda, cpu'):
        select_provider("gpu")  # type: ignore[arg-type]


def test_cuda_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ProviderError, match=r"device is cuda, but this onnxruntime is built without CUDA.*\[gpu\]"):
        select_provider("cuda")
    assert select_provider("auto").device == "cpu" and "built without CUDA" in str(select_provider("auto").note)
    assert select_provider("cpu").note is None


def test_cuda_without_a_driver_or_device(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_cuda(monkeypatch, devices=0)
    with pytest.raises(ProviderError, match="driver reports no device"):
        select_provider("cuda")
    monkeypatch.undo()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(ctypes, "CDLL", _no_library)
    with pytest.raises(ProviderError, match="no NVIDIA driver"):
        select_provider("cuda")


def _no_library(name: str) -> None:
    raise OSError(f"{name} is not there")


def test_cuda_is_selected_if_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_cuda(monkeypatch, devices=3)
    assert select_provider("auto", 2) == select_provider("cuda", 2)
    assert (select_provider("cuda", 2).device, select_provider("cuda", 2).options["device_id"]) == ("cuda", 2)
    with pytest.raises(ProviderError, match="device_index is 3, but the driver has 3 devices, counted from 0"):
        select_provider("cuda", 3)


def test_cuda_without_its_runtime_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_cuda(monkeypatch)
    driver = ctypes.CDLL("libcuda.so.1")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver if name == "libcuda.so.1" else _no_library(name))
    with pytest.raises(ProviderError, match=r"CUDA 13's runtime is not installed .*uv pip install '\.\[gpu\]'"):
        select_provider("cuda")
