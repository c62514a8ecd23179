"""Excuses: why the model, and not the server, may have broken a check. A fake provider behind a proxy has none."""

from __future__ import annotations

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonValue
from dragoman.contract.outcome import Outcome

__all__ = [
    "excuse_cut_answer",
    "excuse_ending",
    "excuse_finish_reason",
    "excuse_odd_characters",
    "excuse_silent_model",
]

_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_CUT = ("length", "max_output_tokens", "max_tokens")
_ENDED = ("stop", "completed", "end_turn")
_LAST_CHARACTERS = tuple(".!?}])。！？」")
"""With these a text may end by itself."""


def excuse_cut_answer(outcome: Outcome, _: JsonValue) -> str:
    """The token limit has cut the answer off, so that its call or its JSON is not complete."""
    wrote, limit = _count_tokens(outcome), _read_limit(outcome)
    cut = any(finish in _CUT for finish in _read_finishes(outcome))
    honest = wrote is None or limit is None or wrote >= limit
    return f"the limit of {limit} tokens cut the answer off" if cut and honest else ""


def excuse_finish_reason(outcome: Outcome, allowed: JsonValue) -> str:
    """The token limit has cut the answer off, or the model has ended before it, or just there."""
    if not any(name in _CUT for name in allowed):
        return excuse_cut_answer(outcome, allowed)
    wrote, limit = _count_tokens(outcome), _read_limit(outcome)
    if wrote is None and outcome.is_sse:
        wrote = _count_text_deltas(outcome)
    if limit is None or not set(_read_finishes(outcome)) <= set(_ENDED):
        return ""
    if wrote is None:
        return "the model may have ended before the limit" if _may_have_ended(outcome) else ""
    early = wrote < limit or (wrote == limit and _may_have_ended(outcome))
    return f"the model ended after {wrote} of {limit} tokens" if early else ""


def excuse_ending(outcome: Outcome, types: JsonValue) -> str:
    """As for the finish reason that belongs to the type of the last event."""
    return excuse_finish_reason(outcome, ["length" if name == "response.incomplete" else "stop" for name in types])


def excuse_silent_model(outcome: Outcome, _: JsonValue) -> str:
    """The model has ended at once."""
    wrote = _count_tokens(outcome)
    return f"the model ended after {wrote} tokens" if wrote is not None and wrote <= 1 else ""


def excuse_odd_characters(outcome: Outcome, texts: JsonValue) -> str:
    """A weak model writes bytes that are not UTF-8."""
    return "the model may have written bytes that are not UTF-8" if texts == ["\ufffd"] else ""


def _read_finishes(outcome: Outcome) -> list[str]:
    names = load_dialect(outcome.dialect).finish
    return [names.get(finish, finish) for finish in map(str, outcome.content.finishes)]


def _count_tokens(outcome: Outcome) -> int | None:
    """Count the tokens that the model wrote, as the usage says; None without one, or if it is not true."""
    usage = outcome.content.usages[-1] if outcome.content.usages else {}
    number = usage.get("completion_tokens", usage.get("output_tokens"))
    is_true = isinstance(number, int) and (number > 0 or not any(outcome.content.texts))
    return number if is_true else None


def _may_have_ended(outcome: Outcome) -> bool:
    texts = [text.rstrip() for text in outcome.content.texts]
    return all(not text or text.endswith(_LAST_CHARACTERS) for text in texts)


def _count_text_deltas(outcome: Outcome) -> int:
    deltas = [delta for body in outcome.objects for delta in _list_deltas(body)]
    return sum(bool(delta) for delta in deltas)


def _list_deltas(body: JsonValue) -> list[JsonValue]:
    choices = body.get("choices")
    if not isinstance(choices, list):
        return [body.get("delta")] if str(body.get("type")).endswith((".delta", "block_delta")) else []
    shown = [choice.get("delta", choice) for choice in choices if isinstance(choice, dict)]
    return [delta.get("content") or delta.get("text") for delta in shown if isinstance(delta, dict)]


def _read_limit(outcome: Outcome) -> int | None:
    found = (outcome.request.get(name) for name in _LIMITS)
    return next((limit for limit in found if isinstance(limit, int)), None)
