"""What a user of the command line did wrong."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.proxy.config.document import did_you_mean

__all__ = ["Misuse", "unknown"]


class Misuse(ValueError):
    """Wrong usage: the text says what was wrong, where, and what to do."""


def unknown(option: str, what: str, word: str, known: Iterable[str]) -> Misuse:
    """For a word that is none of the known ones."""
    known = list(known)
    hint = did_you_mean(word, known) or f"there are: {', '.join(known) or 'none'}"
    return Misuse(f'{option}: there is no {what} "{word[:100]}"; {hint}')
