"""The azure dialect: Azure AI model inference."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, embeddings, served
from .calls import DEPLOYMENT
from .info import INFORMATION

__all__ = ["AZURE"]

AZURE = Dialect(
    name="azure",
    profiles=("documented", "actual"),
    auth={
        "both": {"Authorization": "Bearer {}", "api-key": "{}"},
        "bearer": {"Authorization": "Bearer {}"},
        "api-key": {"api-key": "{}"},
    },
    served={"chat": served.SERVED, "embeddings": embeddings.SERVED},
    called={"chat": chat.CALLED, "embeddings": embeddings.CALLED},
    forwarded=("x-ms-error-code",),
    deployment_header=DEPLOYMENT,
    information=INFORMATION,
)
