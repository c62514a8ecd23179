"""Open an ONNX file on a provider: quietly, and on that provider or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .providers import GPU, Provider, ProviderError, cpu

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["FATAL_ONLY", "open_session"]

ERRORS_ONLY, FATAL_ONLY = 3, 4


def open_session(
    file: Path, provider: Provider, *, threads: int = 0, fallback: bool = False
) -> tuple[InferenceSession, Provider]:
    """The session, and the provider that it runs on. `threads` 0 takes one per core.

    With `fallback`, a CUDA session that cannot be made becomes one on the CPU, whose note says why.
    Raises ProviderError.
    """
    if provider.device == "cpu":
        return _open(file, provider, threads), provider
    try:
        session = _open(file, provider, threads)
        lack = None if session.get_providers()[0] == provider.name else "onnxruntime fell back to the CPU"
    except ProviderError as error:
        lack = str(error)
    if lack is None:
        return session, provider
    if not fallback:
        raise ProviderError(
            f"device is cuda, but {file} runs on the CPU only: {lack}. CUDA 13's libraries come with {GPU};"
            " `device: auto` would take the CPU"
        )
    other = cpu(f"CUDA could not open {file.name}: {lack}")
    return _open(file, other, threads), other


def _open(file: Path, provider: Provider, threads: int) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY if provider.device == "cpu" else FATAL_ONLY
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # no core is kept busy between steps
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=[(provider.name, provider.options)])
    except Exception as error:
        raise ProviderError(f"{file} cannot be opened by onnxruntime: {error}") from error
