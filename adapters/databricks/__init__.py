"""The databricks dialect: the Foundation Model API of Databricks model serving."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from . import chat, completions, embeddings, responses, responses_served, served
from .endpoints import INFORMATION
from .invocations import protocol_of

__all__ = ["DATABRICKS"]

DATABRICKS = Dialect(
    name="databricks",
    profiles=("documented", "actual"),
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={
        "chat": served.SERVED,
        "responses": responses_served.SERVED,
        "completions": completions.SERVED,
        "embeddings": embeddings.SERVED,
    },
    called={
        "chat": chat.CALLED,
        "responses": responses.CALLED,
        "completions": completions.CALLED,
        "embeddings": embeddings.CALLED,
    },
    summarised_reasoning=True,
    forwarded=("served-model-name",),
    protocol_of=protocol_of,
    information=INFORMATION,
)
