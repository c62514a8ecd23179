"""Texts that others wrote, on a terminal: no model, provider or client may control it."""

from __future__ import annotations

__all__ = ["remove_controls"]

_CONTROLS = {code: None for code in (*range(32), *range(127, 160), *range(0xD800, 0xE000)) if chr(code) not in "\n\t"}
"""Control characters, and halves of surrogate pairs, which cannot be printed."""


def remove_controls(text: str) -> str:
    """The text without the characters that a terminal would obey instead of showing."""
    return text.translate(_CONTROLS)
