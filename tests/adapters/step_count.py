"""Counts the steps of a function, so that a test can compare costs without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import TraceFunction

__all__ = ["count_steps"]


def count_steps(function: Callable[[], object]) -> int:
    """Call the function and count the lines of Python that run; each pass of a loop or comprehension counts."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps
