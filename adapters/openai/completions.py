"""The openai dialect of completions: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.writer import ChatStreamWriter
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.completions.reply import FINISH_REASONS, CompletionsStreamReader, read_completions_reply
from dragoman.adapters.completions.requests import check_request
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.fit import HUB_COMPLETIONS, fit
from dragoman.adapters.validation import load_validator

from .faults import read_fault, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai", finish={"end_turn": "stop", "max_tokens": "length"}, known=FINISH_REASONS)


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Validator the body as OpenAI would; it is in hub form already."""
    check_request(call.body, load_validator("openai/completions.request", ctx.profile))
    return call.body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_COMPLETIONS)
    body["model"] = ctx.target.model
    fit(body, load_validator("openai/completions.request", ctx.profile), ctx, "keep-extensions", HUB_COMPLETIONS)
    return Call("POST", "/completions", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_completions_reply(reply, REPLY_RULES, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def read_stream(ctx: Context) -> CompletionsStreamReader:
    return CompletionsStreamReader(REPLY_RULES, ctx)


def write_stream(ctx: Context) -> ChatStreamWriter:
    return ChatStreamWriter(lambda fault: write_fault(fault, ctx).body)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = Called(write_request, read_reply, read_stream, read_fault)
