"""Azure's `/info`, which describes a model: ModelInfo of the Azure AI model inference specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.dialect import prefix
from dragoman.adapters.listing import Information, ListedModel, Task

from .calls import check_version

__all__ = ["INFORMATION"]

_TYPES: Mapping[Task, str] = {
    "chat": "chat_completion",
    "completions": "text_generation",
    "embeddings": "embeddings",
}


def _write_info(models: Sequence[ListedModel], call: Call) -> JsonObject:
    check_version(call)
    (model,) = models
    return {"model_name": model.name, "model_type": _TYPES[model.task], "model_provider_name": "dragoman"}


_PATHS = prefix("azure", "/info", "/models/info")
INFORMATION: Mapping[str, Information] = {"info": Information("default", _write_info, _PATHS)}
