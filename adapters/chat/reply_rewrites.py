"""Rewrites of hub replies and chunks for dialects that lack some of the hub's places. All return new objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = [
    "drop_empty",
    "drop_nulls",
    "flatten_reasoning_tokens",
    "move_refusal_to_content",
    "rewrite_choices",
    "write_finish_reason",
]

_ALWAYS = ("role", "content")


def rewrite_choices(body: JsonObject, part: str, rewrite: Callable[[JsonObject, JsonObject, Path], None]) -> JsonObject:
    """The body with a copy of each choice and of its message (or delta), both given to `rewrite` to be altered. A
    choice without one gets an empty one: some of Azure's chunks have none, and not every policy fills it in."""
    choices = []
    for i, choice in enumerate(body["choices"]):
        choice = {**choice, part: dict(choice.get(part) or {})}
        rewrite(choice, choice[part], ("choices", i))
        choices.append(choice)
    return {**body, "choices": choices}


def drop_nulls(holder: JsonObject, *names: str) -> None:
    """Leave out keys that the dialect does not have, if they say nothing."""
    for name in names:
        if name in holder and holder[name] is None:
            del holder[name]


def drop_empty(message: JsonObject) -> None:
    """Leave out keys that say nothing, as `annotations: []`: a client sends a message back as it came, and a dialect
    that refuses unknown keys in messages would refuse those."""
    for name in [name for name, value in message.items() if value in (None, []) and name not in _ALWAYS]:
        del message[name]


def move_refusal_to_content(holder: JsonObject, path: Path, ctx: Context) -> None:
    """A refusal, in dialects that have no place for it, is what the assistant said."""
    refusal = holder.pop("refusal", None)
    if refusal:
        ctx.receipt.record_conversion((*path, "refusal"), "the refusal is a part of the content")
        holder["content"] = (holder.get("content") or "") + refusal


def write_finish_reason(choice: JsonObject, words: Mapping[str, str], path: Path, ctx: Context) -> None:
    """The finish reason in the dialect's words; the provider's own word stays only if it says more."""
    reason = choice.get("finish_reason")
    if reason is None:
        return
    native = choice.pop("native_finish_reason", None)
    choice["finish_reason"] = word = words.get(reason, reason)
    if native is not None and native != word:
        choice["native_finish_reason"] = native
    if word != reason:
        ctx.receipt.record_conversion((*path, "finish_reason"), f"{reason!r} is {word!r} here")


def flatten_reasoning_tokens(usage: JsonObject) -> JsonObject:
    """Usage with `reasoning_tokens` next to the counts instead of inside `completion_tokens_details`."""
    details = dict(usage.get("completion_tokens_details") or {})
    flat = {key: value for key, value in usage.items() if key != "completion_tokens_details"}
    if "reasoning_tokens" in details:
        flat["reasoning_tokens"] = details.pop("reasoning_tokens")
    if details:
        flat["completion_tokens_details"] = details
    return flat
