"""Reads a provider's chat replies and streams into hub form."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.choice_reply import read_choices
from dragoman.adapters.common.choice_stream import ChoiceStreamReader
from dragoman.adapters.common.reply_rules import ReplyRules

from .normalizer import ChatNormalizer

__all__ = ["ChatStreamReader", "read_chat_reply"]

_FILTERED = "content_filter"
_SAID = {"message", "delta", "text"}


class ChatStreamReader(ChoiceStreamReader):
    """`read_stream` of chat, for every dialect."""

    protocol = ChatNormalizer


def read_chat_reply(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a reply into hub form, as the policy `replies` requires. Alters and returns `reply.body`.

    Raises Fault if the reply reports an error, is incomplete, or cannot be normalized.
    """
    _fill_filtered_messages(reply.body, ctx)
    return read_choices(reply, rules, ctx, ChatNormalizer)


def _fill_filtered_messages(body: Any, ctx: Context) -> None:
    """Give an empty message to choices that a filter has taken it from, in place: Azure OpenAI leaves it out."""
    choices = body.get("choices") if isinstance(body, dict) else None
    for position, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict) and choice.get("finish_reason") == _FILTERED and not choice.keys() & _SAID:
            choice["message"] = {"role": "assistant", "content": None}
            ctx.receipt.record_fill(("choices", position, "message"), "the filter has removed it")
