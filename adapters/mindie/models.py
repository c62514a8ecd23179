"""MindIE's descriptions of models: `/v1/models` in OpenAI's form, and `/info`. Facts that only a server has are null.

Source: the source code of MindIE of 2026-04.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman import __version__
from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.listing import Information, ListedModel, list_as_openai

__all__ = ["INFORMATION"]

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


def _write_info(models: Sequence[ListedModel], _call: Call) -> JsonObject:
    return {
        **dict.fromkeys(_UNKNOWN),
        "max_best_of": 1,
        "version": __version__,
        "models": [_write_details(model) for model in models],
    }


def _write_details(model: ListedModel) -> JsonObject:
    return {
        "model_device_type": "npu",
        "model_dtype": None,
        "model_id": model.name,
        "model_pipeline_tag": "text-generation",
        "model_sha": None,
        "max_total_tokens": None,
    }


INFORMATION: Mapping[str, Information] = {
    **list_as_openai("MindIE Server", "/mindie/v1/models"),
    "info": Information("all", _write_info, ("/mindie/info",)),
}
