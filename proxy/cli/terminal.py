"""Texts that others wrote, on a terminal: no model, provider or client may control it."""

from __future__ import annotations

import re

__all__ = ["remove_controls"]

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]+")
"""Control characters, and halves of surrogate pairs, which cannot be printed."""


def remove_controls(text: str) -> str:
    """The text without the characters that a terminal would obey instead of showing."""
    return _CONTROLS.sub("", text)
