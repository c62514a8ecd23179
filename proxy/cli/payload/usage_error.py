"""The error for wrong usage of the command line."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.proxy.config.document import did_you_mean

__all__ = ["UsageError", "unknown_name_error"]


class UsageError(ValueError):
    """Wrong usage. The text says what is wrong, where, and what to do."""


def unknown_name_error(option: str, kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not one of the known ones. `kind` is what it names, such as "dialect"."""
    known = list(known)
    hint = did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}"
    return UsageError(f'{option}: there is no {kind} "{name[:100]}"; {hint}')
