"""The azure dialect: Azure AI model inference."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from .chat import CALLED

__all__ = ["AZURE"]

AZURE = Dialect(
    name="azure",
    profiles=("documented", "actual"),
    auth={
        "both": {"Authorization": "Bearer {}", "api-key": "{}"},
        "bearer": {"Authorization": "Bearer {}"},
        "api-key": {"api-key": "{}"},
    },
    called={"chat": CALLED},
    forwarded=("x-ms-error-code",),
)
