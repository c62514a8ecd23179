"""The keys that dragoman's replies have and that the API of their dialect lacks: clients send messages back as they got
them, so the checks of a request leave these keys out."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.carried_keys import CARRIED_KEYS

__all__ = ["leave_out_reply_keys"]

_MESSAGE_KEYS = frozenset(
    {
        "annotations",
        "citations",
        "context",
        "extra_content",
        "provider_specific_fields",
        "reasoning_content",
        "reasoning_details",
        "reasoning_signature",
        "thinking_blocks",
    }
)
_CALL_KEYS = frozenset({*CARRIED_KEYS, "index"})


def leave_out_reply_keys(body: JsonObject) -> JsonObject:
    """The body of a request without these keys in the assistant's messages and their calls; the same object if there
    are none. Positions do not change."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return body
    made = [_strip_message(message) for message in messages]
    return body if all(one is given for one, given in zip(made, messages, strict=True)) else {**body, "messages": made}


def _strip_message(message: object) -> object:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    calls = message.get("tool_calls")
    made = [_strip(call, _CALL_KEYS) for call in calls] if isinstance(calls, list) else calls
    if made != calls:
        message = {**message, "tool_calls": made}
    return _strip(message, _MESSAGE_KEYS)


def _strip(holder: object, keys: frozenset[str]) -> object:
    if not isinstance(holder, dict) or keys.isdisjoint(holder):
        return holder
    return {key: value for key, value in holder.items() if key not in keys}
