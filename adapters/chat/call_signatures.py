"""Gemini's signatures of tool calls in chat: Gemini refuses the next turn if a call comes back without its signature.

In the hub a call has Google's form, `extra_content: {google: {thought_signature}}`. Databricks' Gemini models have
`thoughtSignature` instead (databricks/databricks-ai-bridge#270).
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.carried_keys import GOOGLE_SIGNATURE, drop_signature, has_signature
from dragoman.adapters.common.seals import is_foreign_maker
from dragoman.adapters.paths import Path, lookup

from .messages import convert_messages

__all__ = ["convert_calls", "drop_foreign_signatures", "pack_signature", "sign_calls", "unpack_signature"]

_FLAT = "thoughtSignature"
_LOST = "the call has lost its signature, and the service refuses it without one"


def unpack_signature(call: JsonObject) -> JsonObject:
    """The call with Databricks' `thoughtSignature` in the hub's form; the same object if it has none."""
    if not isinstance(call.get(_FLAT), str):
        return call
    rest = {key: value for key, value in call.items() if key != _FLAT}
    return {"extra_content": {"google": {"thought_signature": call[_FLAT]}}, **rest}


def pack_signature(call: JsonObject) -> JsonObject:
    """The call with Google's signature as Databricks' `thoughtSignature`; the same object if it has nothing else."""
    extra, signature = call.get("extra_content"), lookup(call, GOOGLE_SIGNATURE)
    if not isinstance(signature, str) or extra != {"google": {"thought_signature": signature}}:
        return call
    return {**{key: value for key, value in call.items() if key != "extra_content"}, _FLAT: signature}


def convert_calls(
    message: JsonObject, convert: Callable[[JsonObject], JsonObject], path: Path, ctx: Context
) -> JsonObject:
    """The message at `path` with each of its calls converted; the same object if nothing changes."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    made = [convert(call) if isinstance(call, dict) else call for call in calls]
    if all(one is call for one, call in zip(made, calls, strict=True)):
        return message
    ctx.receipt.record_conversion((*path, "tool_calls"), "the signature of a call has another name")
    return {**message, "tool_calls": made}


def sign_calls(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Give the first call of each message the signature that the service accepts in place of a lost one.

    Codex and Claude Code send calls back without the keys that they do not know, and so do clients that another model
    has answered before.
    """
    signature = ctx.target.facts.call_signature
    if signature is None:
        return messages

    def convert(message: JsonObject, path: Path) -> JsonObject:
        first, *others = message["tool_calls"]
        ctx.receipt.record_fill((*path, "tool_calls", 0, "extra_content"), _LOST, "loss")
        extra = {**(first.get("extra_content") or {}), "google": {"thought_signature": signature}}
        return {**message, "tool_calls": [{**first, "extra_content": extra}, *others]}

    unsigned = [i for i, message in enumerate(messages) if message.get("tool_calls") and not _is_signed(message)]
    return convert_messages(messages, unsigned, convert)


def _is_signed(message: JsonObject) -> bool:
    return any(has_signature(call) for call in message["tool_calls"])


def drop_foreign_signatures(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Drop Google's signatures of calls if the target's model is another vendor's, whose provider may refuse them."""
    if not is_foreign_maker("google", ctx.target.facts.seals):
        return messages

    def convert(message: JsonObject, path: Path) -> JsonObject:
        calls = [drop_signature(call, (*path, "tool_calls", i), ctx) for i, call in enumerate(message["tool_calls"])]
        return {**message, "tool_calls": calls}

    calling = [i for i, message in enumerate(messages) if message.get("tool_calls")]
    return convert_messages(messages, calling, convert)
