"""Sealed reasoning: one text beside the input for the documented Databricks Responses API, an item of the conversation
in the hub."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject

__all__ = ["move_reasoning_into_input", "move_reasoning_out_of_input"]

_PLACE = ("reasoning", "encrypted_content")


def move_reasoning_into_input(body: JsonObject, ctx: Context) -> None:
    """Alter a client's request: its sealed reasoning becomes an item before the assistant's last turn."""
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict) or "encrypted_content" not in reasoning:
        return
    body["reasoning"] = {key: value for key, value in reasoning.items() if key != "encrypted_content"}
    sealed = reasoning["encrypted_content"]
    if sealed is None:
        return
    items = body["input"]
    if not isinstance(items, list):
        ctx.receipt.map_paths([(("input",), ("input", 0, "content"))])
        items = [{"role": "user", "content": items}]
    at = _last_turn(items)
    item = {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    body["input"] = [*items[:at], item, *items[at:]]
    ctx.receipt.record_conversion(_PLACE, "sealed reasoning is an item of the conversation", after=("input", at))
    shifted = [(("input", i), ("input", i + 1)) for i in range(at, len(items))]
    ctx.receipt.map_paths([*shifted, (_PLACE, ("input", at, "encrypted_content"))])


def _last_turn(items: list[JsonObject]) -> int:
    """Where the assistant's last turn begins; 0 where it has said nothing."""
    at = len(items)
    while at and not _of_assistant(items[at - 1]):
        at -= 1
    while at and _of_assistant(items[at - 1]):
        at -= 1
    return at


def _of_assistant(item: JsonObject) -> bool:
    return item.get("role") == "assistant" or item.get("type") == "function_call"


def move_reasoning_out_of_input(body: JsonObject, ctx: Context) -> None:
    """Alter a request for the documented API: what the last reasoning item seals stands beside the input, and the
    items go, their readable text with them."""
    items = body.get("input")
    if not isinstance(items, list) or not any(item.get("type") == "reasoning" for item in items):
        return
    thoughts = [i for i, item in enumerate(items) if item.get("type") == "reasoning"]
    last = next((i for i in reversed(thoughts) if items[i].get("encrypted_content")), None)
    for i in thoughts:
        if i == last:
            ctx.receipt.record_conversion(("input", i), "sealed reasoning stands beside the input", after=_PLACE)
            body["reasoning"] = {**(body.get("reasoning") or {}), "encrypted_content": items[i]["encrypted_content"]}
        else:
            ctx.receipt.record_drop(("input", i), "the documented input has no place for reasoning")
    kept = [i for i, item in enumerate(items) if item.get("type") != "reasoning"]
    moved = [] if last is None else [(("input", last, "encrypted_content"), _PLACE)]
    ctx.receipt.map_paths([*((("input", i), ("input", new)) for new, i in enumerate(kept)), *moved])
    body["input"] = [items[i] for i in kept]
