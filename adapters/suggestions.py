"""Propose known names for one that a client or a user wrote wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "find_nearest"]

_LONGEST = 256


def find_nearest(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return at most `most` known names that are similar, the most similar first.

    `likeness` is the least similarity, from 0 (nothing in common) to 1 (equal).
    """
    return difflib.get_close_matches(name[:_LONGEST], known, n=most, cutoff=likeness)


def did_you_mean(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> str:
    """Return `; did you mean this?`, to append to a sentence; empty if no known name is similar."""
    close = find_nearest(name, known, most, likeness)
    return f"; did you mean {' or '.join(close)}?" if close else ""
