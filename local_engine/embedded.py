"""The model that comes with the package, and whether this installation can run any."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["INSTALL", "NAME", "can_answer", "embedded_folder", "lacking"]

NAME = "dragoman-mini"
INSTALL = "uv pip install 'dragoman[local]'"

_NEEDED = ("jinja2", "llguidance", "numpy", "onnxruntime", "tokenizers")


def embedded_folder() -> Path:
    return Path(__file__).parent / "mini"


def lacking() -> list[str]:
    """The libraries of the extra `local` that are not installed. Imports none of them."""
    return [name for name in _NEEDED if find_spec(name) is None]


def can_answer() -> bool:
    """Whether the embedded model is there, and what runs it."""
    return not lacking() and (embedded_folder() / "tokenizer.json").is_file()
