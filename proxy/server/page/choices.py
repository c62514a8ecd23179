"""What a replay can choose: policies with their values, targets, and profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.dialect import Dialect
from dragoman.proxy.config.choices import PolicyChoice
from dragoman.proxy.config.models import Config

__all__ = ["list_policies", "list_profiles", "list_targets"]


def list_policies() -> list[JsonObject]:
    """The policies by name, with their values."""
    properties = PolicyChoice.model_json_schema()["properties"]
    return [{"name": name, "values": _list_values(schema)} for name, schema in properties.items()]


def list_targets(config: Config) -> list[str]:
    """The configured targets as `provider/model`, without those of patterns, which have no model of their own."""
    named = (
        (target.provider, target.model or name) for name, model in config.models.items() for target in model.targets
    )
    return [*dict.fromkeys(f"{provider}/{model}" for provider, model in named if "*" not in model)]


def list_profiles(config: Config, dialects: Mapping[str, Dialect]) -> dict[str, list[str]]:
    """The profiles of the dialects that the providers speak, by dialect."""
    used = dict.fromkeys(provider.dialect for provider in config.providers.values() if provider.dialect)
    return {name: [*dialects[name].profiles] for name in used if name in dialects}


def _list_values(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema allows, without null."""
    own = [True, False] if schema.get("type") == "boolean" else schema.get("enum", [])
    return [*own, *(value for part in schema.get("anyOf", ()) for value in _list_values(part))]
