"""The databricks dialect: the Foundation Model API of Databricks model serving."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect

from .chat import CALLED
from .served import SERVED

__all__ = ["DATABRICKS"]

DATABRICKS = Dialect(
    name="databricks",
    profiles=("documented", "actual"),
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={"chat": SERVED},
    called={"chat": CALLED},
    forwarded=("served-model-name",),
)
