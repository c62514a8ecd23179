"""What reading a configuration leads to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .document import ConfigText
from .models import Config
from .problems import Problem

__all__ = ["CheckedConfig"]


@dataclass(frozen=True, slots=True)
class CheckedConfig:
    """A valid configuration, the warnings about it, the files that it was read from, and the first one's text."""

    config: Config
    warnings: tuple[Problem, ...]
    files: tuple[Path, ...] = ()
    text: ConfigText | None = None
