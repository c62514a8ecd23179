"""Presets of policies: one word that sets several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dragoman.adapters.call import Policy

from .choices import PolicyChoice

__all__ = ["DEFAULT_PRESET", "PRESETS", "find_preset", "merge_policies"]

DEFAULT_PRESET = "faithful"

_FAITHFUL = Policy()

PRESETS: Mapping[str, Policy] = {
    "strict": replace(_FAITHFUL, unsupported="refuse-exactly", replies="strict"),
    DEFAULT_PRESET: _FAITHFUL,
    "lenient": replace(_FAITHFUL, unsupported="drop", out_of_range="clamp", extra_parameters="drop"),
}
_FIELDS = ("extra_parameters", "unsupported", "out_of_range", "replies")  # what a preset sets


def merge_policies(*choices: PolicyChoice) -> Policy:
    """The policy that results from the choices of all levels, the widest first. On each level the preset comes first,
    then the single policies."""
    chosen: dict[str, Any] = {"stream_usage": "ask"}  # the pipeline alone asks for nothing
    for choice in choices:
        if choice.preset is not None:
            chosen |= _list_fields(PRESETS[choice.preset])
        chosen |= choice.list_values()
    chosen.pop("preset", None)
    return Policy(**chosen)


def find_preset(policy: Policy) -> str | None:
    """The preset that sets all that this policy has; None if there is none."""
    return next((name for name, preset in PRESETS.items() if _list_fields(preset) == _list_fields(policy)), None)


def _list_fields(policy: Policy) -> dict[str, str]:
    return {name: getattr(policy, name) for name in _FIELDS}
