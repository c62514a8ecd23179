"""ToolSelection a device: what is installed, what the driver says, and what a session really runs on."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from engine_rig import Folders

from dragoman.local_engine.runtime import providers
from dragoman.local_engine.runtime.providers import ExecutionProvider, ProviderError, choose
from dragoman.local_engine.runtime.session import open_session

CUDA = ExecutionProvider("cuda", "CUDAExecutionProvider")


def wheels(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> str:
        if name not in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return name

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


def with_cuda(monkeypatch: pytest.MonkeyPatch, devices: int = 1) -> None:
    class Driver:
        def cuInit(self, flags: int) -> int:
            return 0

        def cuDeviceGetCount(self, count: Any) -> int:
            count._obj.value = devices
            return 0

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda **_: None)
    monkeypatch.setattr(providers.ctypes, "CDLL", lambda name: Driver())


def test_neither_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    wheels(monkeypatch)
    with pytest.raises(ProviderError, match=r"uv pip install 'dragoman\[local\]'"):
        choose("cpu")


def test_both_wheels_are_an_error_with_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    wheels(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    for device in ("auto", "cuda", "cpu"):
        with pytest.raises(ProviderError, match="`uv pip uninstall onnxruntime onnxruntime-gpu`, then `uv pip install"):
            choose(device)


def test_a_device_that_nobody_knows() -> None:
    with pytest.raises(ProviderError, match='"gpu" is not one of auto, cuda, cpu'):
        choose("gpu")  # type: ignore[arg-type]


def test_cuda_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ProviderError, match=r"device is cuda, but this onnxruntime has no CUDA.*\[gpu\]"):
        choose("cuda")
    assert choose("auto").device == "cpu" and "has no CUDA" in str(choose("auto").note)
    assert choose("cpu").note is None


def test_cuda_without_a_driver_or_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cuda(monkeypatch, devices=0)
    with pytest.raises(ProviderError, match="driver reports no device"):
        choose("cuda")
    monkeypatch.undo()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(providers.ctypes, "CDLL", _no_library)
    with pytest.raises(ProviderError, match="no NVIDIA driver"):
        choose("cuda")


def _no_library(name: str) -> None:
    raise OSError(f"{name} is not there")


def test_cuda_with_all_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cuda(monkeypatch, devices=3)
    assert choose("auto", 2) == choose("cuda", 2)
    assert (choose("cuda", 2).device, choose("cuda", 2).options["device_id"]) == ("cuda", 2)
    with pytest.raises(ProviderError, match="device_index is 3, and the driver counts 3 devices, from 0"):
        choose("cuda", 3)


def test_cuda_without_its_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cuda(monkeypatch)
    driver = providers.ctypes.CDLL("libcuda.so.1")
    monkeypatch.setattr(providers.ctypes, "CDLL", lambda name: driver if name == "libcuda.so.1" else _no_library(name))
    with pytest.raises(ProviderError, match=r"CUDA 13's runtime is not installed .*dragoman\[gpu\]"):
        choose("cuda")


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="needs a wheel without CUDA"
)
def test_a_silent_fall_back_is_an_error(folders: Folders, capfd: pytest.CaptureFixture[str]) -> None:
    """onnxruntime itself warns and goes on with the CPU."""
    file = folders() / "model.onnx"
    with pytest.warns(UserWarning), pytest.raises(ProviderError, match=r"device is cuda, but .* runs on the CPU only"):
        open_session(file, CUDA)
    with pytest.warns(UserWarning):
        session, provider = open_session(file, CUDA, fallback=True)
    assert session.get_providers() == ["CPUExecutionProvider"] and "fell back" in str(provider.note)
    assert capfd.readouterr().err == ""


def test_a_file_that_onnxruntime_refuses(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07")
    with pytest.raises(ProviderError, match=r"m\.onnx cannot be opened"):
        open_session(tmp_path / "m.onnx", providers.cpu_provider())
