"""The openai dialect of Responses: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request, fill_stream_flag, raise_token_limit
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_writer import COMMENT
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.fit import fit
from dragoman.adapters.request_properties import HUB_RESPONSES
from dragoman.adapters.responses.call_ids import shorten_call_ids
from dragoman.adapters.responses.foreign_reasoning import drop_foreign_calls, drop_foreign_reasoning
from dragoman.adapters.responses.reply import read_response
from dragoman.adapters.responses.requests import check_request
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.validation import load_validator

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai")


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Validate the body as OpenAI would; it is in hub form already."""
    check_request(call.body, load_validator("openai/responses.request", ctx.profile))
    return call.body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    drop_foreign_reasoning(body, ctx, "openai")
    drop_foreign_calls(body, ctx, "openai")
    shorten_call_ids(body, ctx)
    fill_stream_flag(body, ctx)
    rules = load_validator("openai/responses.request", ctx.profile)
    raise_token_limit(body, rules, ctx)
    fit(body, rules, ctx, "keep-extensions", HUB_RESPONSES)
    return Call("POST", "/responses", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_response(reply, REPLY_RULES, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def read_stream(ctx: Context) -> ResponsesStreamReader:
    return ResponsesStreamReader(REPLY_RULES, ctx)


def write_stream(ctx: Context) -> ResponsesStreamWriter:
    return ResponsesStreamWriter(lambda fault: write_fault(fault, ctx).body, ping=COMMENT)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = Called(write_request, read_reply, read_stream, REPLY_RULES.read_fault)
