"""The openai dialect of chat: the hub's own form, so there is almost nothing to convert."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import ChatStreamWriter
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.token_limits import TokenLimitRule
from dragoman.adapters.dialect import Served
from dragoman.adapters.validation import load_validator

from .azure_addresses import FORM
from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai")


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Validate the body as OpenAI would; it is in hub form already."""
    check_request(call.body, load_validator("openai/chat.request", ctx.profile))
    return call.body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def write_stream(ctx: Context) -> ChatStreamWriter:
    return ChatStreamWriter(lambda fault: write_fault(fault, ctx).body)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = chat_called(
    REPLY_RULES,
    replay="drop",
    reads_audio=True,
    token_limit=TokenLimitRule(by_address={FORM: "max_completion_tokens"}, by_model=True, keeps_name=True),
    extras="keep-extensions",
)
