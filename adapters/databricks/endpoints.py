"""Databricks' lists of serving endpoints, with the fields that its SDK reads.

The fields are those of ServingEndpoint and ServingEndpointDetailed. Times are in milliseconds.

Before its first request, and without a key, the SDK asks a host for its settings: where to sign in, and which account,
workspace and cloud it belongs to. Dragoman answers with an empty object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.dialect import prefix
from dragoman.adapters.listing import Information, ListedModel, Task

__all__ = ["INFORMATION"]

_LIST = "/api/2.0/serving-endpoints"
_TASKS: Mapping[Task, str] = {
    "chat": "llm/v1/chat",
    "completions": "llm/v1/completions",
    "embeddings": "llm/v1/embeddings",
}


def _write_endpoints(models: Sequence[ListedModel], _call: Call) -> JsonObject:
    return {"endpoints": [_write_summary(model) for model in models]}


def _write_endpoint(models: Sequence[ListedModel], _call: Call) -> JsonObject:
    (model,) = models
    return {**_write_summary(model), "permission_level": "CAN_QUERY", "route_optimized": False}


def _write_host(_models: Sequence[ListedModel], _call: Call) -> JsonObject:
    return {}


def _write_summary(model: ListedModel) -> JsonObject:
    return {
        "id": model.name,
        "name": model.name,
        "task": _TASKS[model.task],
        "state": {"ready": "READY", "config_update": "NOT_UPDATING"},
        "creation_timestamp": model.since * 1000,
        "last_updated_timestamp": model.since * 1000,
    }


INFORMATION: Mapping[str, Information] = {
    "models": Information("all", _write_endpoints, prefix("databricks", _LIST)),
    "model": Information("named", _write_endpoint, prefix("databricks", f"{_LIST}/{{name}}")),
    "host": Information("none", _write_host, ("/.well-known/databricks-config",)),
}
