"""Rewrites of hub replies and chunks for dialects that lack some of the hub's keys."""

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

_REQUIRED = ("role", "content")


def rewrite_choices(body: JsonObject, part: str, rewrite: Callable[[JsonObject, JsonObject, Path], None]) -> JsonObject:
    """A copy of the body in which `rewrite` has altered each choice.

    `part` is 'message' or 'delta'. `rewrite` gets copies of the choice and of that part, and the path of the choice.
    A choice without that part gets an empty one: some of Azure's chunks have none, and not every policy fills it in.
    """
    choices = []
    for i, choice in enumerate(body["choices"]):
        choice = {**choice, part: {**(choice.get(part) or {})}}
        rewrite(choice, choice[part], ("choices", i))
        choices.append(choice)
    return {**body, "choices": choices}


def drop_nulls(holder: JsonObject, *names: str) -> None:
    """Remove these keys if their value is null, for dialects that do not have them."""
    for name in names:
        if name in holder and holder[name] is None:
            del holder[name]


def drop_empty(message: JsonObject) -> None:
    """Remove keys whose value is null or an empty list, such as `annotations: []`.

    Clients send messages back as they received them, and a dialect may refuse such keys in a request.
    """
    for name in [name for name, value in message.items() if value in (None, []) and name not in _REQUIRED]:
        del message[name]


def move_refusal_to_content(holder: JsonObject, path: Path, ctx: Context) -> None:
    """Append the refusal to the content, for dialects that do not support refusals."""
    refusal = holder.pop("refusal", None)
    if not isinstance(refusal, str):
        if refusal is not None:
            ctx.receipt.record_drop((*path, "refusal"), "it is no text, and the dialect has none")
    elif refusal:
        after = (*path, "content")
        ctx.receipt.record_conversion((*path, "refusal"), "the refusal becomes part of the content", after=after)
        holder["content"] = (holder.get("content") or "") + refusal


def write_finish_reason(choice: JsonObject, words: Mapping[str, str], path: Path, ctx: Context) -> None:
    """Replace the finish reason with the dialect's word from `words`.

    `native_finish_reason`, the provider's own word, is kept only if it differs.
    """
    reason = choice.get("finish_reason")
    if reason is None:
        return
    native = choice.pop("native_finish_reason", None)
    choice["finish_reason"] = word = words.get(reason, reason)
    if native is not None and native != word:
        choice["native_finish_reason"] = native
    if word != reason:
        ctx.receipt.record_conversion((*path, "finish_reason"), f"{reason!r} is {word!r} here")


def flatten_reasoning_tokens(usage: JsonObject, ctx: Context) -> JsonObject:
    """A copy of the usage with `reasoning_tokens` next to the counts, not inside `completion_tokens_details`."""
    details = dict(usage.get("completion_tokens_details") or {})
    flat = {key: value for key, value in usage.items() if key != "completion_tokens_details"}
    if "reasoning_tokens" in details:
        flat["reasoning_tokens"] = details.pop("reasoning_tokens")
        before, after = ("usage", "completion_tokens_details", "reasoning_tokens"), ("usage", "reasoning_tokens")
        ctx.receipt.record_conversion(before, "the dialect has them next to the counts", after=after)
    if details:
        flat["completion_tokens_details"] = details
    return flat
