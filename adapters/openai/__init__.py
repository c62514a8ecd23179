"""The openai dialect."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, completions, embeddings, responses
from .models import INFORMATION

__all__ = ["OPENAI"]

OPENAI = Dialect(
    name="openai",
    profiles=("documented", "actual"),
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={
        "chat": chat.SERVED,
        "responses": responses.SERVED,
        "completions": completions.SERVED,
        "embeddings": embeddings.SERVED,
    },
    called={
        "chat": chat.CALLED,
        "responses": responses.CALLED,
        "completions": completions.CALLED,
        "embeddings": embeddings.CALLED,
    },
    keeps_responses=True,
    information=INFORMATION,
)
