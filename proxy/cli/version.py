"""The command `version`."""

from __future__ import annotations

from dragoman import __version__

__all__ = ["version"]


def version() -> None:
    """Show the version."""
    print(f"dragoman {__version__}")
