"""Reads a provider's chat replies and streams into hub form."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.choice_reply import read_choices
from dragoman.adapters.common.choice_stream import ChoiceStreamReader
from dragoman.adapters.common.reply_rules import ReplyRules

from .normalizer import ChatNormalizer

__all__ = ["ChatStreamReader", "read_chat_reply"]


class ChatStreamReader(ChoiceStreamReader):
    """`read_stream` of chat, for every dialect."""

    protocol = ChatNormalizer


def read_chat_reply(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a reply into hub form, as the policy `replies` requires. Alters and returns `reply.body`.

    Raises Fault if the reply reports an error, is incomplete, or cannot be normalized.
    """
    return read_choices(reply, rules, ctx, ChatNormalizer)
