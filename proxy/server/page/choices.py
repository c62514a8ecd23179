"""What a replay can choose: targets and profiles."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.dialect import Dialect
from dragoman.proxy.config.models import Config

__all__ = ["list_profiles", "list_targets"]


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
