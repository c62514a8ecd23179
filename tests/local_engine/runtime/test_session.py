"""Sessions: the provider that they really use, and files that cannot be opened."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
from scheduler_rig import Folders

from dragoman.local_engine.runtime.providers import ExecutionProvider, ProviderError, cpu_provider
from dragoman.local_engine.runtime.session import open_session

CUDA = ExecutionProvider("cuda", "CUDAExecutionProvider")


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="needs a wheel without CUDA"
)
def test_a_silent_fallback_of_onnxruntime_is_an_error(folders: Folders, capfd: pytest.CaptureFixture[str]) -> None:
    """onnxruntime itself only warns and continues with the CPU."""
    file = folders() / "model.onnx"
    with pytest.warns(UserWarning), pytest.raises(ProviderError, match=r"device is cuda, but .* runs on the CPU only"):
        open_session(file, CUDA)
    with pytest.warns(UserWarning):
        session, provider = open_session(file, CUDA, fallback=True)
    assert session.get_providers() == ["CPUExecutionProvider"] and "fell back" in str(provider.note)
    assert capfd.readouterr().err == ""


def test_a_file_that_onnxruntime_rejects_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07")
    with pytest.raises(ProviderError, match=r"m\.onnx cannot be opened"):
        open_session(tmp_path / "m.onnx", cpu_provider())
