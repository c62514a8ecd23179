"""onnxruntime sessions: open an ONNX file on one execution provider, without a silent fallback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .providers import GPU_INSTALL, ExecutionProvider, ProviderError, cpu_provider

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["FATAL_ONLY", "open_session"]

ERRORS_ONLY, FATAL_ONLY = 3, 4


def open_session(
    file: Path, provider: ExecutionProvider, *, threads: int = 0, fallback: bool = False
) -> tuple[InferenceSession, ExecutionProvider]:
    """Open a session; return it and the provider that it uses. `threads` 0 means one per core.

    With `fallback`, if CUDA cannot open the file, the session runs on the CPU and the provider's note says why.
    Raises ProviderError.
    """
    if provider.device == "cpu":
        return _create_session(file, provider, threads), provider
    try:
        session = _create_session(file, provider, threads)
        reason = None if session.get_providers()[0] == provider.name else "onnxruntime fell back to the CPU"
    except ProviderError as error:
        reason = str(error)
    if reason is None:
        return session, provider
    if not fallback:
        raise ProviderError(
            f"device is cuda, but {file} runs on the CPU only: {reason}. To install CUDA 13's libraries: {GPU_INSTALL};"
            " `device: auto` uses the CPU"
        )
    cpu = cpu_provider(f"CUDA could not open {file.name}: {reason}")
    return _create_session(file, cpu, threads), cpu


def _create_session(file: Path, provider: ExecutionProvider, threads: int) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY if provider.device == "cpu" else FATAL_ONLY
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # threads do not spin between steps
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=[(provider.name, provider.options)])
    except Exception as error:
        raise ProviderError(f"{file} cannot be opened by onnxruntime: {error}") from error
