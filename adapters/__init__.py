"""Normalize and translate, without any input or output: pure functions and small state machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import dialects

__all__ = ["dialects"]


def __getattr__(name: str) -> Any:
    """Load `dialects` on first use: importing the SSE framer or the path functions loads no dialect."""
    if name != "dialects":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .registry import dialects

    return dialects
