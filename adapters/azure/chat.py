"""The azure dialect of chat.

Requests: an API version in the query; `extra-parameters` says what the service shall do with keys that its API does
not define; stop strings as a list.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.messages import convert_refusals, join_text_parts, rename_developer_role
from dragoman.adapters.chat.reply import ChatStreamReader, read_chat_reply
from dragoman.adapters.common.parameters import clamp_effort, copy_request, rename_token_limit
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called
from dragoman.adapters.fit import fit
from dragoman.adapters.validation import load_validator

from .calls import DEFAULT_API_VERSION, call_headers, extras_of
from .faults import WORDS, read_fault

__all__ = ["CALLED"]

_DEVELOPER_SINCE = "2025"

REPLY_RULES = ReplyRules("azure", words=WORDS)


def write_request(request: JsonObject, ctx: Context) -> Call:
    rules = load_validator("azure/chat.request", ctx.profile)
    version = ctx.target.api_version or DEFAULT_API_VERSION
    body = copy_request(request, ctx)
    body["model"] = ctx.target.model
    rename_token_limit(body, ctx)
    clamp_effort(body, rules, ctx)
    if isinstance(body.get("stop"), str):
        ctx.receipt.record_conversion(("stop",), "a list of one", after=("stop", 0))
        ctx.receipt.map_paths([(("stop",), ("stop", 0))])
        body["stop"] = [body["stop"]]
    if version < _DEVELOPER_SINCE:
        body["messages"] = rename_developer_role(body["messages"], ctx)
    body["messages"] = join_text_parts(convert_refusals(body["messages"], ctx), ctx)
    if "stream_options" not in ctx.call.body and body.pop("stream_options", None):
        ctx.receipt.record_drop(("stream_options",), "the client did not ask for it", "form")
    fit(body, rules, ctx, extras_of(ctx))
    return Call("POST", "/chat/completions", body, {"api-version": version}, call_headers(body, rules, ctx))


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_chat_reply(reply, REPLY_RULES, ctx)


def read_stream(ctx: Context) -> ChatStreamReader:
    return ChatStreamReader(REPLY_RULES, ctx)


CALLED = Called(write_request, read_reply, read_stream, read_fault)
