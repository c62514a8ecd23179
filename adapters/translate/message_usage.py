"""Converts token counts between chat and Messages.

`prompt_tokens` of chat counts all tokens of the prompt, `input_tokens` of Messages only those that no cache holds:

    prompt_tokens = input_tokens + cache_read_input_tokens + cache_creation_input_tokens

The details of chat keep both counts of the cache, so that the way back is exact.

Sources: Anthropic Messages, usage; anthropic 2.12.0, Usage and MessageDeltaUsage; OpenAI OpenAPI 2.3, CompletionUsage;
OpenAI Responses, cache_write_tokens.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.counts import is_count

__all__ = ["convert_usage", "record_usage", "to_chat_counts", "to_chat_tier", "to_messages_tier", "to_messages_usage"]

_COUNTS = "counts get the names of Messages; a missing detail is 0"
_NO_USAGE = "the provider reported no token counts"

_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"
_CACHED = {"cached_tokens": _READ, "cache_write_tokens": _WRITTEN}
_THOUGHT = "output_tokens_details"
_CHAT_KEYS = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
)
_MESSAGE_KEYS = frozenset({"input_tokens", "output_tokens", _READ, _WRITTEN, _THOUGHT, "service_tier"})
_TIERS = {"default": "standard", "priority": "priority", "batch": "batch"}
_CHAT_TIERS = {tier: name for name, tier in _TIERS.items()}


def to_messages_usage(usage: JsonObject | None) -> JsonObject:
    """Convert chat's usage in hub form to Messages; zeros if there is none. A provider's own keys are kept."""
    if usage is None:
        usage = {"prompt_tokens": 0, "completion_tokens": 0}
    prompt = usage.get("prompt_tokens_details") or {}
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    read, written = prompt.get("cached_tokens") or 0, prompt.get("cache_write_tokens") or 0
    if max(read, written) <= usage["prompt_tokens"] < read + written:  # some gateways count the same tokens as both
        written = usage["prompt_tokens"] - read
    return {
        **{key: value for key, value in usage.items() if key not in _CHAT_KEYS},
        "input_tokens": max(usage["prompt_tokens"] - read - written, 0),
        _WRITTEN: written,
        _READ: read,
        "output_tokens": usage["completion_tokens"],
        **({_THOUGHT: {"thinking_tokens": thought}} if thought else {}),
    }


def to_chat_counts(usage: Any) -> JsonObject | None:
    """Convert the usage of a message to chat; None if a count is missing. A provider's own keys are kept."""
    if not isinstance(usage, dict) or not (
        is_count(usage.get("input_tokens")) and is_count(usage.get("output_tokens"))
    ):
        return None
    cached = {name: usage[key] for name, key in _CACHED.items() if is_count(usage.get(key))}
    prompt, completion = usage["input_tokens"] + sum(cached.values()), usage["output_tokens"]
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    details = {"prompt_tokens_details": cached} if cached else {}
    thought = usage.get(_THOUGHT)
    if isinstance(thought, dict) and is_count(thought.get("thinking_tokens")):
        details["completion_tokens_details"] = {"reasoning_tokens": thought["thinking_tokens"]}
    rest = {key: value for key, value in usage.items() if key not in _MESSAGE_KEYS and value is not None}
    return {**rest, **counts, **details}


def convert_usage(usage: JsonObject | None, tier: Any, ctx: Context) -> JsonObject:
    """The usage of a message, from that of a chat reply and its `service_tier`; what changes is recorded."""
    record_usage(usage, tier, ctx)
    return to_messages_usage(usage) | to_messages_tier(tier)


def record_usage(usage: JsonObject | None, tier: Any, ctx: Context) -> None:
    """Record what changes in the usage of a chat reply, and in its `service_tier`, in a message."""
    if usage is None:
        ctx.receipt.record_fill(("usage",), _NO_USAGE)
    else:
        ctx.receipt.record_conversion(("usage",), _COUNTS)
    if tier in _TIERS:
        reason = "the usage of a message has the tier"
        ctx.receipt.record_conversion(("service_tier",), reason, after=("usage", "service_tier"))
    elif tier:
        ctx.receipt.record_drop(("service_tier",), "Messages has no such tier")


def to_messages_tier(tier: Any) -> JsonObject:
    """The key of a message's usage for chat's `service_tier`; none for a tier that Messages does not have."""
    return {"service_tier": _TIERS[tier]} if tier in _TIERS else {}


def to_chat_tier(usage: Any) -> JsonObject:
    """The key of a chat reply for the tier in a message's usage."""
    tier = usage.get("service_tier") if isinstance(usage, dict) else None
    return {"service_tier": _CHAT_TIERS.get(tier, tier)} if isinstance(tier, str) and tier else {}
