"""The dialects that tests go through, as the registry has them."""

from __future__ import annotations

from dragoman.adapters.registry import NAMES, dialects

__all__ = ["DIALECTS", "VARIANTS", "called", "served"]

DIALECTS = NAMES
VARIANTS = tuple((name, profile) for name in NAMES for profile in dialects[name].profiles)
"""Every dialect in each of its profiles."""


def served(protocol: str) -> tuple[str, ...]:
    """The dialects in which clients may ask for a protocol."""
    return tuple(name for name in NAMES if protocol in dialects[name].served)


def called(protocol: str) -> tuple[str, ...]:
    """The dialects in which providers are called with a protocol."""
    return tuple(name for name in NAMES if protocol in dialects[name].called)
