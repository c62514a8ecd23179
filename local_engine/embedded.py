"""The model that is part of the package, and whether this installation can run models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

__all__ = ["INSTALL", "NAME", "SETTINGS", "can_answer", "embedded_folder", "missing_libraries"]

NAME = "dragoman-mini"
SETTINGS: Mapping[str, str | int | Sequence[str]] = {
    "engine": "local",
    "device": "cpu",
    "threads": 1,
    "protocols": ["chat", "completions"],
}
"""The provider of the model, as a configuration has it."""
INSTALL = "uv pip install '.[local]' in the checkout of dragoman"

_LIBRARIES = ("jinja2", "llguidance", "numpy", "onnxruntime", "tokenizers")


def embedded_folder() -> Path:
    """The model folder of the embedded model."""
    return Path(__file__).parent / "mini"


def missing_libraries() -> list[str]:
    """List the libraries of the extra `local` that are not installed, without importing any."""
    return [name for name in _LIBRARIES if find_spec(name) is None]


def can_answer() -> bool:
    """Whether the embedded model and the libraries that run it are installed."""
    return not missing_libraries() and (embedded_folder() / "tokenizer.json").is_file()
