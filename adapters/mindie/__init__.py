"""The mindie dialect: MindIE's OpenAI-compatible endpoint."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from .chat import CALLED
from .models import INFORMATION
from .served import SERVED

__all__ = ["MINDIE"]

MINDIE = Dialect(
    name="mindie",
    profiles=("documented", "actual", "native"),
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={"chat": SERVED},
    called={"chat": CALLED},
    information=INFORMATION,
)
