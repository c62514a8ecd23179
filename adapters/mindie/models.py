"""What a MindIE server tells of its models, in the form of its source of 2026-04: `/v1/models` as OpenAI has it, and
`/info`. What only the server itself could know is null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman import __version__
from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.listing import Information, Listed

__all__ = ["INFORMATION"]

_OWNER = "MindIE Server"
_UNKNOWN = (
    "docker_label",
    "max_batch_total_tokens",
    "max_concurrent_requests",
    "max_stop_sequences",
    "max_waiting_tokens",
    "sha",
    "validation_workers",
    "waiting_served_ratio",
    "max_input_length",
)


def _models(models: Sequence[Listed], _call: Call) -> JsonObject:
    return {"object": "list", "data": [_entry(model) for model in models]}


def _model(models: Sequence[Listed], _call: Call) -> JsonObject:
    (model,) = models
    return _entry(model)


def _entry(model: Listed) -> JsonObject:
    return {"id": model.name, "object": "model", "created": model.since, "owned_by": _OWNER}


def _info(models: Sequence[Listed], _call: Call) -> JsonObject:
    return {
        **dict.fromkeys(_UNKNOWN),
        "max_best_of": 1,
        "version": __version__,
        "models": [_details(model) for model in models],
    }


def _details(model: Listed) -> JsonObject:
    return {
        "model_device_type": "npu",
        "model_dtype": None,
        "model_id": model.name,
        "model_pipeline_tag": "text-generation",
        "model_sha": None,
        "max_total_tokens": None,
    }


INFORMATION: Mapping[str, Information] = {
    "models": Information("all", _models),
    "model": Information("named", _model),
    "info": Information("all", _info),
}
