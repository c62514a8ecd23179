"""Records the keys that a conversion did not use, and carries over those that belong to no protocol."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.carried_keys import CARRIED_KEYS
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.built_in_tools import BUILT_IN_CALLS, BUILT_IN_RESULTS
from dragoman.schemas import load

__all__ = ["ITEM_KEYS", "PART_KEYS", "carry_reply_keys", "record_unused_keys"]

_NOTHING: tuple[Any, ...] = (None, "", [], {})
_EVERY_ITEM = ("type", "id", "status")
_EVERY_CALL = (*_EVERY_ITEM, "call_id", "name", "namespace", *CARRIED_KEYS)
_EVERY_RESULT = (*_EVERY_ITEM, "call_id", "output")

ITEM_KEYS: Mapping[Any, frozenset[str]] = {
    "message": frozenset({*_EVERY_ITEM, "role", "content"}),
    "reasoning": frozenset({*_EVERY_ITEM, "summary", "content", "encrypted_content"}),
    "function_call": frozenset({*_EVERY_CALL, "arguments"}),
    "custom_tool_call": frozenset({*_EVERY_CALL, "input"}),
    "function_call_output": frozenset(_EVERY_RESULT),
    "custom_tool_call_output": frozenset(_EVERY_RESULT),
    **{kind: frozenset({*_EVERY_CALL, one.action, "environment", "caller"}) for kind, one in BUILT_IN_CALLS.items()},
    **dict.fromkeys(BUILT_IN_RESULTS, frozenset({*_EVERY_RESULT, "max_output_length", "caller"})),
}
"""The keys of each type of item that chat can express, or that mean nothing outside Responses."""

PART_KEYS = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
"""The keys of a part of an assistant's message in Responses that chat can express."""

_PADDING = frozenset({"obfuscation"})  # keys of stream events without a meaning


def record_unused_keys(holder: JsonObject, used: Container[str], path: Path, ctx: Context, protocol: str) -> None:
    """Record each key of `holder` that is not in `used`, unless its value is empty; `protocol` lacks the key."""
    if isinstance(used, frozenset) and holder.keys() <= used:
        return
    for key, value in holder.items():
        if key not in used and value not in _NOTHING:
            ctx.receipt.record_drop((*path, key), f"{protocol} has no place for it")


def carry_reply_keys(
    reply: JsonObject, made: JsonObject, hubs: tuple[str, str], used: Collection[str], ctx: Context
) -> JsonObject:
    """The provider's own keys at the top of a reply, which keep their names in a reply of another protocol.

    `made` is the translated reply, `hubs` are the schemas of `reply` and of `made`. Keys in `used` were translated.
    Every other key is recorded as a loss: one that only the protocol of `reply` has, or whose name means something
    else in the protocol of `made`.
    """
    if isinstance(used, frozenset) and reply.keys() <= used:
        return {}
    known, taken = (load(hub)["properties"].keys() for hub in hubs)
    carried: JsonObject = {}
    for key, value in reply.items():
        if key in used or value in _NOTHING or made.get(key) == value:
            continue
        if key in _PADDING:
            ctx.receipt.record_drop((key,), "padding without a meaning", "form")
        elif key in known or key in taken:
            ctx.receipt.record_drop((key,), "the client's protocol has no place for it")
        else:
            carried[key] = value
    return carried
