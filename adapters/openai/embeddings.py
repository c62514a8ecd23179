"""The openai dialect of embeddings: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Served
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.requests import check_request, refuse_stream
from dragoman.adapters.validation import load_validator

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai")


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator("openai/embeddings.request", ctx.profile))
    return call.body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


SERVED = Served(read_request, write_reply, refuse_stream, write_fault)
CALLED = embeddings_called(REPLY_RULES, extras="keep-extensions")
