"""What dragoman emulates only if the configuration says how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from .paths import Path

__all__ = ["OPT_IN_PLACES", "FormatMode", "OptIns"]

FormatMode: TypeAlias = Literal["tool", "instruct"]

OPT_IN_PLACES: Mapping[Path, str] = {
    ("response_format",): "response_format",
    ("response_format", "type"): "response_format",
    ("text", "format"): "response_format",
    ("text", "format", "type"): "response_format",
    ("output_config", "format"): "response_format",
    ("output_config", "format", "type"): "response_format",
    ("output_format",): "response_format",
    ("output_format", "type"): "response_format",
    ("tools",): "tools",
    ("tool_choice",): "tools",
}
"""The setting for each place in a canonical request, of chat, Responses and Messages, that a target may refuse. What is
refused inside such a value is not emulated: a target that takes tools without `strict` has tools."""


@dataclass(frozen=True, slots=True)
class OptIns:
    """How the settings are emulated; None means that one is not. `hold_streams`: a stream is held until it is valid.

    `places` are the places in a canonical request that may be emulated.
    """

    response_format: FormatMode | None = None
    tools: Literal["instruct"] | None = None
    usage: Literal["count"] | None = None
    hold_streams: bool = True
    places: frozenset[Path] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = frozenset(place for place, setting in OPT_IN_PLACES.items() if getattr(self, setting) is not None)
        object.__setattr__(self, "places", places)

    def without(self, setting: str) -> OptIns:
        """The same without one setting."""
        chosen: dict[str, Any] = {setting: None}
        return replace(self, **chosen)
