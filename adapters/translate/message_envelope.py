"""What surrounds the content of a message and of a chat reply, whole or streamed."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.messages.events import new_message

from .message_usage import to_chat_tier, to_messages_tier, to_messages_usage
from .unused_keys import carry_reply_keys

__all__ = ["CHAT_KEYS", "begin_chat", "begin_message", "explain_refusal", "read_refusal"]

CHAT_KEYS = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier"})
"""The keys of a chat reply that are translated."""

_MESSAGE_KEYS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage"}
)
_CHAT_REPLY, _MESSAGE = "hub/chat.reply", "hub/messages.reply"
_ID = "msg_"


def begin_message(reply: JsonObject, ctx: Context) -> JsonObject:
    """A message without content, for a chat reply or for the first chunk of a stream; `{}` if there is none.

    An id that is none of a message is replaced. The provider's own keys are kept.
    """
    given = str(reply.get("id"))
    message_id = given if given.startswith(_ID) else ctx.new_id("msg")
    message = new_message(message_id, reply.get("model") or ctx.target.model)
    message["usage"] = to_messages_usage(reply.get("usage")) | to_messages_tier(reply.get("service_tier"))
    return {**carry_reply_keys(reply, message, (_CHAT_REPLY, _MESSAGE), CHAT_KEYS, ctx), **message}


def begin_chat(message: JsonObject, kind: str, ctx: Context) -> JsonObject:
    """A chat reply without choices, for a message, whole or in the first event of a stream; `{}` if there is none.

    `kind` is its `object`. The provider's own keys are kept.
    """
    reply: JsonObject = {
        "id": message.get("id") or ctx.new_id("chatcmpl"),
        "object": kind,
        "created": int(ctx.clock()),
        "model": message.get("model") or ctx.target.model,
        **to_chat_tier(message.get("usage")),
    }
    return {**carry_reply_keys(message, reply, (_MESSAGE, _CHAT_REPLY), _MESSAGE_KEYS, ctx), **reply}


def explain_refusal(refusal: str) -> JsonObject:
    """The key of a message that has this sentence instead of an answer."""
    return {"stop_details": {"type": "refusal", "category": None, "explanation": refusal}}


def read_refusal(message: JsonObject) -> str | None:
    """The sentence of a refusal in a message, or in the `delta` of its last events; None if there is none."""
    details: Any = message.get("stop_details")
    text = details.get("explanation") if isinstance(details, dict) else None
    return text if isinstance(text, str) and text else None
