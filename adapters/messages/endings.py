"""The stop reasons of Messages, and what other words of providers mean.

Source: anthropic 2.12.0, StopReason and BetaStopReason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import Context
from dragoman.adapters.common.finish_words import Failure, find_ending, has_finished
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.faults import Fault
from dragoman.schemas import load

__all__ = ["FINISH_REASONS", "STOP_REASONS", "find_failure", "is_known", "match_calls", "read_stop_reason"]

FINISH_REASONS: Mapping[str, str] = {
    reason: str(find_ending(reason)) for reason in load("hub/messages.reply")["properties"]["stop_reason"]["enum"]
}
"""A stop reason of the hub -> the finish reason of chat."""

STOP_REASONS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
"""A finish reason of chat -> the stop reason."""

_PLACE = ("stop_reason",)


def is_known(native: Any) -> bool:
    """Whether this is one of the hub's own stop reasons."""
    return isinstance(native, str) and native in FINISH_REASONS


def find_failure(native: Any) -> Fault | None:
    """The fault that a stop reason reports; None if it reports none."""
    ending = find_ending(str(native)) if has_finished(native) and not is_known(native) else None
    return ending.to_fault(str(native)) if isinstance(ending, Failure) else None


def read_stop_reason(native: Any, changes: ChangeRecorder, ctx: Context) -> str:
    """The hub's stop reason for the provider's, which is not null. A word that nobody knows reads `end_turn`, a loss.

    Raises Fault if it reports a failure, or if nobody knows it and the policy is `strict`.
    """
    if is_known(native):
        return str(native)
    failure = find_failure(native)
    if failure is not None:
        raise failure
    word = str(native)
    ending = find_ending(word)
    if isinstance(ending, str):
        changes.record_conversion(_PLACE, f"stop reason {word!r} reads {STOP_REASONS[ending]!r}")
        return STOP_REASONS[ending]
    if ctx.target.policy.replies == "strict":
        text = f"the provider ended the answer with an unknown stop reason: {word[:100]!r}"
        raise Fault("upstream_invalid_response", text, code="upstream_invalid_finish_reason", provider_code=word)
    changes.record_conversion(_PLACE, f"nobody knows what the stop reason {word[:100]!r} means", "loss")
    return "end_turn"


def match_calls(stop_reason: str, calls: bool, changes: ChangeRecorder) -> str:
    """Make a stop reason agree with the blocks: whether there are `calls` of the client's tools.

    Agents wait for a call that does not come, and miss one that nobody has announced.
    """
    fitting = {"tool_use": "end_turn", "end_turn": "tool_use"}.get(stop_reason)
    if fitting is None or calls == (stop_reason == "tool_use"):
        return stop_reason
    changes.record_conversion(_PLACE, f"stop reason {stop_reason!r} reads {fitting!r}", "form" if calls else "loss")
    return fitting
