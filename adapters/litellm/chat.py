"""Chat over litellm: OpenAI's form, with parameters that the hub knows and no others."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.reply import ChatStreamReader, read_chat_reply
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called
from dragoman.adapters.fit import HUB_CHAT, fit
from dragoman.adapters.native_errors import read_fault
from dragoman.adapters.validation import load_validator

from .addresses import refuse_addresses
from .parameters import settle_parameters

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("openai")


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx)
    body["model"] = ctx.target.model
    body.pop("stream_options", None)
    refuse_addresses(body)
    settle_parameters(body, ctx, HUB_CHAT)
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}
    fit(body, load_validator("openai/chat.request", ctx.profile), ctx, extras="keep-extensions")
    return Call("POST", "/chat/completions", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_chat_reply(reply, REPLY_RULES, ctx)


def read_stream(ctx: Context) -> ChatStreamReader:
    return ChatStreamReader(REPLY_RULES, ctx)


CALLED = Called(write_request, read_reply, read_stream, read_fault)
