"""The openai dialect of Responses: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import begin
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.fit import HUB_RESPONSES, fit
from dragoman.adapters.responses.reply import read_response
from dragoman.adapters.responses.requests import check_request
from dragoman.adapters.responses.stream import ResponsesReader
from dragoman.adapters.responses.writer import ResponsesWriter
from dragoman.adapters.validation import judge

from .faults import write_fault

__all__ = ["CALLED", "SERVED"]

READING = Reading("openai")


def read_request(call: Call, ctx: Context) -> JsonObject:
    """Judge the body as OpenAI would; it is in hub form already."""
    check_request(call.body, judge("openai/responses.request", ctx.profile), ctx.receipt)
    return call.body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = begin(request, ctx, HUB_RESPONSES)
    body["model"] = ctx.target.model
    fit(body, judge("openai/responses.request", ctx.profile), ctx, "keep-extensions", HUB_RESPONSES)
    return Call("POST", "/responses", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_response(reply, READING, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


def read_stream(ctx: Context) -> ResponsesReader:
    return ResponsesReader(READING, ctx)


def write_stream(ctx: Context) -> ResponsesWriter:
    return ResponsesWriter(lambda fault: write_fault(fault, ctx).body, comments=True)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
CALLED = Called(write_request, read_reply, read_stream, READING.read_fault)
