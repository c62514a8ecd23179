"""Anthropic's lists of models. OpenAI's clients use the same address; only Anthropic's name a version in a header.

Source: anthropic 2.12.0, ModelInfo, ModelListParams and SyncPage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.dialect import prefix
from dragoman.adapters.faults import Fault
from dragoman.adapters.listing import Information, ListedModel
from dragoman.adapters.messages.headers import read_version

__all__ = ["INFORMATION"]

_DEFAULT_LIMIT, _MOST = 20, 1000


def _write_page(models: Sequence[ListedModel], call: Call) -> JsonObject:
    """The page that the query asks for: `limit` models after `after_id`, or those before `before_id`."""
    read_version(call)
    names, limit = [model.name for model in models], _read_limit(call)
    start, end = 0, len(models)
    if (after := call.query.get("after_id")) is not None:
        start = _find(after, "after_id", names) + 1
        end = min(start + limit, end)
        has_more = end < len(models)
    elif (before := call.query.get("before_id")) is not None:
        end = _find(before, "before_id", names)
        start = max(0, end - limit)
        has_more = start > 0
    else:
        end = min(limit, end)
        has_more = end < len(models)
    page = [_write_entry(model) for model in models[start:end]]
    first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"data": page, "has_more": has_more, "first_id": first, "last_id": last}


def _write_model(models: Sequence[ListedModel], call: Call) -> JsonObject:
    read_version(call)
    (model,) = models
    return _write_entry(model)


def _write_entry(model: ListedModel) -> JsonObject:
    created = datetime.fromtimestamp(model.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": created,
        "lifecycle": "active",
    }


def _read_limit(call: Call) -> int:
    text = call.query.get("limit")
    if text is None:
        return _DEFAULT_LIMIT
    if not (text.isdecimal() and len(text) <= len(str(_MOST)) and 1 <= int(text) <= _MOST):
        raise Fault("invalid_request", f"limit: must be from 1 to {_MOST}", ("limit",), text, code="invalid_value")
    return int(text)


def _find(name: str, parameter: str, names: Sequence[str]) -> int:
    if name not in names:
        raise Fault("invalid_request", f"{parameter}: no such model", (parameter,), name, code="invalid_value")
    return names.index(name)


_PATHS = prefix("anthropic", "/v1/models")
INFORMATION: Mapping[str, Information] = {
    "models": Information("all", _write_page, _PATHS),
    "model": Information("named", _write_model, tuple(f"{path}/{{name}}" for path in _PATHS)),
}
