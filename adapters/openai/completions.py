"""The openai dialect of completions: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.writer import EventWriter
from dragoman.adapters.common.parameters import begin
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.completions.reply import WORDS, CompletionsReader, read_text
from dragoman.adapters.completions.requests import check_request
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.fit import HUB_COMPLETIONS, fit
from dragoman.adapters.validation import judge

from .faults import read_fault, write_fault

__all__ = ["CALLED", "SERVED"]

READING = Reading("openai", finish={"end_turn": "stop", "max_tokens": "length"}, known=WORDS)


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Judge the body as OpenAI would; it is in hub form already."""
    check_request(call.body, judge("openai/completions.request", ctx.profile))
    return call.body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = begin(request, ctx, HUB_COMPLETIONS)
    body["model"] = ctx.target.model
    fit(body, judge("openai/completions.request", ctx.profile), ctx, "keep-extensions", HUB_COMPLETIONS)
    return Call("POST", "/completions", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_text(reply, READING, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def read_stream(ctx: Context) -> CompletionsReader:
    return CompletionsReader(READING, ctx)


def write_stream(ctx: Context) -> EventWriter:
    return EventWriter(lambda fault: write_fault(fault, ctx).body)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = Called(write_request, read_reply, read_stream, read_fault)
