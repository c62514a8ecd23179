"""Leaves the reasoning and the signatures of earlier turns out of a request of Responses if the target cannot use
them."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.carried_keys import drop_signature
from dragoman.adapters.common.seals import is_foreign_maker, is_foreign_seal
from dragoman.adapters.model_facts import Maker

__all__ = ["drop_foreign_calls", "drop_foreign_reasoning"]


def drop_foreign_reasoning(body: JsonObject, ctx: Context, default: Maker | None = None) -> None:
    """Remove reasoning items whose encrypted content another vendor's model made, in the writer's own copy; all of them
    if the target's `reasoning_replay` is `drop`.

    `default` is the maker of the target's seals if nothing is known of its model.
    """
    items = body.get("input")
    if not isinstance(items, list) or not any(item.get("type") == "reasoning" for item in items):
        return
    reasons = {i: reason for i, item in enumerate(items) if (reason := _find_reason(item, ctx, default))}
    for i, reason in reasons.items():
        ctx.receipt.record_drop(("input", i), reason)
    if reasons:
        kept = [i for i in range(len(items)) if i not in reasons]
        ctx.receipt.map_paths([(("input", i), ("input", new)) for new, i in enumerate(kept)])
        body["input"] = [items[i] for i in kept]


def drop_foreign_calls(body: JsonObject, ctx: Context, default: Maker | None = None) -> None:
    """Remove Google's signatures of calls if the target's model is another vendor's, in the writer's own copy.

    `default` is the model's maker if nothing is known of it.
    """
    items = body.get("input")
    if isinstance(items, list) and is_foreign_maker("google", ctx.target.facts.seals or default):
        made = [drop_signature(item, ("input", i), ctx) for i, item in enumerate(items)]
        if any(one is not item for one, item in zip(made, items, strict=True)):
            body["input"] = made


def _find_reason(item: JsonObject, ctx: Context, default: Maker | None) -> str | None:
    """Why the item is removed; None if it is not."""
    if item.get("type") != "reasoning":
        return None
    if ctx.target.reasoning_replay == "drop":
        return "the provider may refuse the reasoning of earlier turns"
    sealed = item.get("encrypted_content")
    if isinstance(sealed, str) and sealed and is_foreign_seal(sealed, ctx.target.facts.seals or default):
        return "only the vendor of the model that made it can read it"
    return None
