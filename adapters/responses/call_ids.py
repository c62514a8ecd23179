"""Shortens the ids of calls for providers that limit their length."""

from __future__ import annotations

from hashlib import sha256

from dragoman.adapters.call import Context, JsonObject

__all__ = ["shorten_call_ids"]

_LONGEST = 64
"""In characters. Source: OpenAI OpenAPI 2.3, FunctionCallOutputItemParam; OpenAI refuses longer ones in calls too."""
_DIGITS = 32


def shorten_call_ids(body: JsonObject, ctx: Context) -> None:
    """Shorten each `call_id` in the input of a Responses request that is too long, in place.

    Servers of other protocols make longer ids, some of more than a thousand characters. An id is cut and ends in its
    digest, so it is the same in a call and its result, and in every later request.
    """
    items = body.get("input")
    if not isinstance(items, list):
        return
    made = [_shorten(item, i, ctx) for i, item in enumerate(items)]
    if any(new is not old for new, old in zip(made, items, strict=True)):
        body["input"] = made


def _shorten(item: JsonObject, position: int, ctx: Context) -> JsonObject:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or len(call_id) <= _LONGEST:
        return item
    reason = f"the provider takes {_LONGEST} characters: the end becomes a digest"
    ctx.receipt.record_conversion(("input", position, "call_id"), reason)
    digest = sha256(call_id.encode()).hexdigest()[:_DIGITS]
    return {**item, "call_id": f"{call_id[: _LONGEST - _DIGITS - 1]}_{digest}"}
