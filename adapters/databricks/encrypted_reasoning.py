"""Move encrypted reasoning between `reasoning.encrypted_content` and the input.

The documented Databricks Responses API has one text outside the input; the hub has an item in the input.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject

__all__ = ["move_reasoning_into_input", "move_reasoning_out_of_input"]

_PLACE = ("reasoning", "encrypted_content")


def move_reasoning_into_input(body: JsonObject, ctx: Context) -> None:
    """Move a client's encrypted reasoning into the input, in place: as an item before the assistant's last turn."""
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict) or "encrypted_content" not in reasoning:
        return
    body["reasoning"] = {key: value for key, value in reasoning.items() if key != "encrypted_content"}
    encrypted = reasoning["encrypted_content"]
    if encrypted is None:
        return
    items = body["input"]
    if not isinstance(items, list):
        ctx.receipt.record_conversion(("input",), "a text becomes a message", after=("input", 0))
        ctx.receipt.map_paths([(("input",), ("input", 0, "content"))])
        items = [{"role": "user", "content": items}]
    at = _find_last_turn(items)
    item = {"type": "reasoning", "summary": [], "encrypted_content": encrypted}
    body["input"] = [*items[:at], item, *items[at:]]
    ctx.receipt.record_conversion(_PLACE, "encrypted reasoning is an item of the input in the hub", after=("input", at))
    shifted = [(("input", i), ("input", i + 1)) for i in range(at, len(items))]
    ctx.receipt.map_paths([*shifted, (_PLACE, ("input", at, "encrypted_content"))])


def _find_last_turn(items: list[JsonObject]) -> int:
    """Return the position at which the assistant's last turn begins; 0 if there is none."""
    at = len(items)
    while at and not _is_of_assistant(items[at - 1]):
        at -= 1
    while at and _is_of_assistant(items[at - 1]):
        at -= 1
    return at


def _is_of_assistant(item: JsonObject) -> bool:
    return item.get("role") == "assistant" or item.get("type") == "function_call"


def move_reasoning_out_of_input(body: JsonObject, ctx: Context) -> None:
    """Move the encrypted content of the last reasoning item out of the input, in place, for the documented API.

    All reasoning items are removed, with their readable text.
    """
    items = body.get("input")
    if not isinstance(items, list) or not any(item.get("type") == "reasoning" for item in items):
        return
    thoughts = [i for i, item in enumerate(items) if item.get("type") == "reasoning"]
    last = next((i for i in reversed(thoughts) if items[i].get("encrypted_content")), None)
    for i in thoughts:
        if i == last:
            ctx.receipt.record_conversion(
                ("input", i), "the documented API has encrypted reasoning outside the input", after=_PLACE
            )
            body["reasoning"] = {**(body.get("reasoning") or {}), "encrypted_content": items[i]["encrypted_content"]}
        else:
            ctx.receipt.record_drop(("input", i), "the documented input does not have reasoning items")
    kept = [i for i, item in enumerate(items) if item.get("type") != "reasoning"]
    moved = [] if last is None else [(("input", last, "encrypted_content"), _PLACE)]
    ctx.receipt.map_paths([*((("input", i), ("input", new)) for new, i in enumerate(kept)), *moved])
    body["input"] = [items[i] for i in kept]
