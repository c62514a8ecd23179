"""The openai dialect of completions: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.writer import EventWriter
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.completions.called import completions_called
from dragoman.adapters.completions.reply import WORDS
from dragoman.adapters.completions.requests import check_request
from dragoman.adapters.dialect import Served
from dragoman.adapters.validation import judge

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

READING = Reading("openai", finish={"end_turn": "stop", "max_tokens": "length"}, known=WORDS)


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Judge the body as OpenAI would; it is in hub form already."""
    check_request(call.body, judge("openai/completions.request", ctx.profile))
    return call.body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def write_stream(ctx: Context) -> EventWriter:
    return EventWriter(lambda fault: write_fault(fault, ctx).body)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = completions_called(READING, extras="keep-extensions")
