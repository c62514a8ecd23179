"""The openai dialect of embeddings: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.dialect import Served
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.requests import check_request, not_streamed
from dragoman.adapters.validation import judge

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

READING = Reading("openai")


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, judge("openai/embeddings.request", ctx.profile))
    return call.body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


SERVED = Served(read_request, write_reply, not_streamed, write_fault)
CALLED = embeddings_called(READING, extras="keep-extensions")
