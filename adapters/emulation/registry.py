"""The emulation of each field, and which emulations a refused request needs."""

from __future__ import annotations

from collections.abc import Mapping

from .choices import CHOICES
from .interface import Emulation
from .single_tool_call import SINGLE_TOOL_CALL
from .stop_sequences import STOP_SEQUENCES
from .token_arrays import make_token_arrays

__all__ = ["EMULATIONS"]

EMULATIONS: Mapping[str, Emulation] = {
    "input": make_token_arrays("input"),
    "prompt": make_token_arrays("prompt"),
    "n": CHOICES,
    "stop": STOP_SEQUENCES,
    "parallel_tool_calls": SINGLE_TOOL_CALL,
}
"""By the field of the request, in the order in which they split it: each splits what the one before it has made."""
