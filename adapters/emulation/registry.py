"""The emulation of each field, and the settings that switch them off."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.adapters.call import JsonObject
from dragoman.adapters.emulated_fields import INNER_FIELDS

from .choices import CHOICES
from .counted_tokens import COUNTED_TOKENS
from .counted_usage import COUNTED_USAGE
from .format_instruction import FORMAT_INSTRUCTION
from .format_tool import FORMAT_TOOL
from .interface import Emulation
from .message_calls import MESSAGE_CALLS
from .message_stops import MESSAGE_STOPS
from .single_tool_call import SINGLE_TOOL_CALL
from .stop_sequences import STOP_SEQUENCES
from .token_arrays import make_token_arrays
from .tool_instruction import TOOL_INSTRUCTION

__all__ = ["EMULATIONS", "OPT_INS", "SETTINGS", "WITHOUT_CALLS", "find_obstacle"]

EMULATIONS: Mapping[str, Emulation] = {
    "input": make_token_arrays("input"),
    "prompt": make_token_arrays("prompt"),
    "n": CHOICES,
    "stop": STOP_SEQUENCES,
    "stop_sequences": MESSAGE_STOPS,
    "parallel_tool_calls": SINGLE_TOOL_CALL,
    "disable_parallel_tool_use": MESSAGE_CALLS,
}
"""By the field of the request, in the order in which they split it: each splits what the one before it has made."""

SETTINGS: Mapping[str, frozenset[str]] = {
    "n": frozenset({"n"}),
    "stop": frozenset({"stop", "stop_sequences"}),
    "parallel_tool_calls": frozenset({"parallel_tool_calls", "disable_parallel_tool_use"}),
    "token_arrays": frozenset({"input", "prompt"}),
}
"""The fields that each setting of a configuration is about. All are emulated unless it says otherwise."""

OPT_INS: Mapping[str, Mapping[str, Emulation]] = {
    "response_format": {"tool": FORMAT_TOOL, "instruct": FORMAT_INSTRUCTION},
    "tools": {"instruct": TOOL_INSTRUCTION},
    "usage": {"count": COUNTED_USAGE},
}
"""The settings that are off by default, and how each can be emulated, in the order in which they rewrite a call."""


WITHOUT_CALLS: Mapping[str, Emulation] = {"count_tokens": COUNTED_TOKENS}
"""The protocols that are answered without a call if a provider does not have them."""


def find_obstacle(field: str, request: JsonObject, *, exactly: bool) -> str | None:
    """Why a field of the request cannot be emulated: an empty text if there is nothing to emulate, None if it can be.

    `exactly`: only if the answer is what a provider with the capability would give.
    """
    emulation = EMULATIONS.get(field)
    if emulation is None or (field not in request and field not in INNER_FIELDS):
        return ""
    obstacle = emulation.find_obstacle(request)
    if obstacle is None and exactly and not emulation.is_exact(request):
        return "dragoman could emulate it, but not exactly"
    return obstacle
