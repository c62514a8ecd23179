"""Chat over litellm: OpenAI's form, with parameters that the hub knows and no others."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.reply import read_completion
from dragoman.adapters.chat.stream import ChatReader
from dragoman.adapters.common.parameters import begin
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.dialect import Called
from dragoman.adapters.fit import HUB_CHAT, fit
from dragoman.adapters.native_errors import read_fault
from dragoman.adapters.validation import judge

from .addresses import refuse_addresses
from .parameters import settle_parameters

__all__ = ["CALLED"]

READING = Reading("openai")


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = begin(request, ctx)
    body["model"] = ctx.target.model
    body.pop("stream_options", None)
    refuse_addresses(body)
    settle_parameters(body, ctx, HUB_CHAT)
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}
    fit(body, judge("openai/chat.request", ctx.profile), ctx, extras="keep-extensions")
    return Call("POST", "/chat/completions", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_completion(reply, READING, ctx)


def read_stream(ctx: Context) -> ChatReader:
    return ChatReader(READING, ctx)


CALLED = Called(write_request, read_reply, read_stream, read_fault)
