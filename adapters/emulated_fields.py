"""Names the field of a request that dragoman may emulate, from its place in the canonical request."""

from __future__ import annotations

from .paths import Path

__all__ = ["INNER_FIELDS", "name_emulated_field"]

INNER_FIELDS = {"disable_parallel_tool_use": "tool_choice"}
"""A field that is inside a parameter -> that parameter. All others are parameters."""


def name_emulated_field(place: Path) -> str:
    """The name by which an emulation is known for what is at a place; empty for the whole request."""
    for part in place[1:2]:
        if INNER_FIELDS.get(str(part)) == place[0]:
            return str(part)
    return str(place[0]) if place else ""
