"""The reasons for which an answer ended, in Messages and in chat.

Messages has more reasons than chat. In the hub, `native_finish_reason` keeps the reason of Messages and `stop_sequence`
the stop sequence that ended the text, so that the way back is exact.

Sources: Anthropic Messages, stop_reason, stop_sequence and stop_details; OpenAI OpenAPI 2.3, finish_reason; vLLM,
`stop_reason`, and SGLang, `matched_stop`: the stop string or the token that ended a choice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from dragoman.adapters.call import JsonObject
from dragoman.adapters.messages.endings import FINISH_REASONS, STOP_REASONS

__all__ = ["ENDING_KEYS", "PAUSED", "StopReason", "read_stop_reason", "to_finish_reason"]

PAUSED = "the provider paused its turn: chat cannot ask it to continue"
"""The reason of a recorded loss."""

_MATCHES = ("stop_reason", "matched_stop")  # other servers' names of `stop_sequence`, which also hold other things

_SEQUENCES = frozenset({"stop_sequence", *_MATCHES})

ENDING_KEYS = frozenset({"finish_reason", "native_finish_reason", "stop_sequence", *_MATCHES})
"""The keys of a chat choice that say why it ended."""


class StopReason(NamedTuple):
    """`stop_reason` and `stop_sequence` of a message."""

    reason: str
    sequence: str | None


def read_stop_reason(choice: JsonObject, stops: Collection[str] = (), *, refused: bool = False) -> StopReason:
    """The stop reason of a finished chat choice, whole or the last piece.

    `stops` are the stop sequences of the request. `refused`: the choice has a refusal instead of an answer.
    """
    finish, native = choice["finish_reason"], choice.get("native_finish_reason")
    sequence = _find_sequence(choice, stops) if finish == "stop" else None
    if sequence is not None:
        return StopReason("stop_sequence", sequence)
    if refused:
        return StopReason("refusal", None)
    if isinstance(native, str) and FINISH_REASONS.get(native) == finish:
        return StopReason(native, None)
    return StopReason(STOP_REASONS[finish], None)


def to_finish_reason(stop_reason: str | None, stop_sequence: Any) -> JsonObject:
    """The keys of a chat choice that say why a message ended."""
    ending: JsonObject = {"finish_reason": FINISH_REASONS.get(str(stop_reason), "stop")}
    if stop_reason is not None:
        ending["native_finish_reason"] = stop_reason
    if stop_sequence is not None:
        ending["stop_sequence"] = stop_sequence
    return ending


def _find_sequence(choice: JsonObject, stops: Collection[str]) -> str | None:
    if _SEQUENCES.isdisjoint(choice):
        return None
    own = choice.get("stop_sequence")
    if isinstance(own, str):
        return own
    return next((found for key in _MATCHES if isinstance(found := choice.get(key), str) and found in stops), None)
