"""The azure dialect: Azure AI model inference."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from .chat import CALLED
from .served import SERVED

__all__ = ["AZURE"]

AZURE = Dialect(
    name="azure",
    profiles=("documented", "actual"),
    auth={
        "both": {"Authorization": "Bearer {}", "api-key": "{}"},
        "bearer": {"Authorization": "Bearer {}"},
        "api-key": {"api-key": "{}"},
    },
    served={"chat": SERVED},
    called={"chat": CALLED},
    forwarded=("x-ms-error-code",),
    deployment_header="azureml-model-deployment",
)
