"""The openai dialect."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from .chat import CALLED, SERVED

__all__ = ["OPENAI"]

OPENAI = Dialect(
    name="openai",
    profiles=("documented", "actual"),
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={"chat": SERVED},
    called={"chat": CALLED},
)
