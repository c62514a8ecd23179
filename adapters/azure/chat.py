"""The azure dialect of chat.

Requests: an API version in the query; `extra-parameters` says what the service shall do with keys that its API does
not define; stop strings as a list.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.messages import developer_to_system, join_text, refusals_as_text
from dragoman.adapters.chat.reply import read_completion
from dragoman.adapters.chat.stream import ChatReader
from dragoman.adapters.common.parameters import begin, nearest_effort, token_limit
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.dialect import Called
from dragoman.adapters.fit import fit
from dragoman.adapters.validation import judge

from .calls import DEFAULT_API_VERSION, call_headers, extras_of
from .faults import WORDS, read_fault

__all__ = ["CALLED"]

_DEVELOPER_SINCE = "2025"

READING = Reading("azure", words=WORDS)


def write_request(request: JsonObject, ctx: Context) -> Call:
    rules = judge("azure/chat.request", ctx.profile)
    version = ctx.target.api_version or DEFAULT_API_VERSION
    body = begin(request, ctx)
    body["model"] = ctx.target.model
    token_limit(body, ctx)
    nearest_effort(body, rules, ctx)
    if isinstance(body.get("stop"), str):
        ctx.receipt.converted(("stop",), "a list of one", after=("stop", 0))
        ctx.receipt.rerouted([(("stop",), ("stop", 0))])
        body["stop"] = [body["stop"]]
    if version < _DEVELOPER_SINCE:
        body["messages"] = developer_to_system(body["messages"], ctx)
    body["messages"] = join_text(refusals_as_text(body["messages"], ctx), ctx)
    if "stream_options" not in ctx.call.body and body.pop("stream_options", None):
        ctx.receipt.dropped(("stream_options",), "the client did not ask for it", "form")
    fit(body, rules, ctx, extras_of(ctx))
    return Call("POST", "/chat/completions", body, {"api-version": version}, call_headers(body, rules, ctx))


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_completion(reply, READING, ctx)


def read_stream(ctx: Context) -> ChatReader:
    return ChatReader(READING, ctx)


CALLED = Called(write_request, read_reply, read_stream, read_fault)
