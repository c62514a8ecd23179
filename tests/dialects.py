"""The dialects that tests go through, as the registry has them."""

from __future__ import annotations

from dragoman.adapters.registry import NAMES, dialects

__all__ = ["ALL_DIALECTS", "DIALECTS", "PROVIDERS", "VARIANTS", "called", "served"]

ALL_DIALECTS = NAMES
DIALECTS = tuple(name for name in NAMES if "chat" in dialects[name].served)
"""The dialects with chat, which most tests go through."""
PROVIDERS = tuple(name for name in NAMES if not {"chat", "messages"}.isdisjoint(dialects[name].called))
"""The dialects whose providers answer chat clients, themselves or over a translation."""
VARIANTS = tuple((name, profile) for name in DIALECTS for profile in dialects[name].profiles)
"""Every dialect with chat in each of its profiles."""


def served(protocol: str) -> tuple[str, ...]:
    """The dialects in which clients may ask for a protocol."""
    return tuple(name for name in NAMES if protocol in dialects[name].served)


def called(protocol: str) -> tuple[str, ...]:
    """The dialects in which providers are called with a protocol."""
    return tuple(name for name in NAMES if protocol in dialects[name].called)
