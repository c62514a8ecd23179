"""The openai dialect of completions: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.writer import ChatStreamWriter
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.completions.called import completions_called
from dragoman.adapters.completions.reply import FINISH_REASONS
from dragoman.adapters.completions.requests import check_request
from dragoman.adapters.dialect import Served
from dragoman.adapters.validation import load_validator

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai", known=FINISH_REASONS)


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Validate the body as OpenAI would; it is in hub form already."""
    check_request(call.body, load_validator("openai/completions.request", ctx.profile))
    return call.body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def write_stream(ctx: Context) -> ChatStreamWriter:
    return ChatStreamWriter(lambda fault: write_fault(fault, ctx).body)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = completions_called(REPLY_RULES, extras="keep-extensions")
