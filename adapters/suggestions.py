"""Names that a client may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "find_nearest"]

_LONGEST = 256


def find_nearest(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """The known names that are close, the closest first."""
    return difflib.get_close_matches(name[:_LONGEST], known, n=most, cutoff=likeness)


def did_you_mean(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> str:
    """`; did you mean this?`, to append to a sentence; empty if no known name is close."""
    close = find_nearest(name, known, most, likeness)
    return f"; did you mean {' or '.join(close)}?" if close else ""
