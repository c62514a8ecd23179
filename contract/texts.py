"""Texts of an endpoint, as reports show them: short, on one line, and without characters that a terminal would obey."""

from __future__ import annotations

__all__ = ["shorten", "to_line"]


def to_line(text: str) -> str:
    """The text as one line of printable characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(text.split()))


def shorten(text: str, most: int) -> str:
    """The beginning of the text as one line of at most so many characters."""
    line = to_line(text[: 4 * most])
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"
