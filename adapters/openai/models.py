"""OpenAI's lists of models, from the OpenAI OpenAPI document 2.3: ListModelsResponse and Model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.listing import Information, Listed

__all__ = ["INFORMATION"]

_OWNER = "dragoman"


def _models(models: Sequence[Listed], _call: Call) -> JsonObject:
    return {"object": "list", "data": [_entry(model) for model in models]}


def _model(models: Sequence[Listed], _call: Call) -> JsonObject:
    (model,) = models
    return _entry(model)


def _entry(model: Listed) -> JsonObject:
    return {"id": model.name, "object": "model", "created": model.since, "owned_by": _OWNER}


INFORMATION: Mapping[str, Information] = {"models": Information("all", _models), "model": Information("named", _model)}
