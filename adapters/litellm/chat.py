"""Chat over litellm: OpenAI's form, closed. A key becomes an argument of litellm's own function, which has many that
steer it, so only what the hub knows goes there, and of that nothing that merely advises: vendors that lack such a
parameter refuse it.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.parameters import begin
from dragoman.adapters.chat.reading import Reading
from dragoman.adapters.chat.reply import read_completion
from dragoman.adapters.chat.stream import ChatReader
from dragoman.adapters.dialect import Called
from dragoman.adapters.faults import Fault
from dragoman.adapters.fit import fit, hub_annotations, settle_extra, settle_unsupported
from dragoman.adapters.native_errors import read_fault as read_native
from dragoman.adapters.validation import judge

__all__ = ["CALLED"]

READING = Reading("openai")


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = begin(request, ctx)
    body["model"] = ctx.target.model
    body.pop("stream_options", None)
    for name in body.keys() - {"model", "messages", "stream"}:
        _settle(body, name, ctx)
    if body.get("stream") is True:
        body["stream_options"] = {"include_usage": True}
    fit(body, judge("openai/chat.request", ctx.profile), ctx, extras="keep-extensions")
    return Call("POST", "/chat/completions", body)


def _settle(body: JsonObject, name: str, ctx: Context) -> None:
    hint = hub_annotations().get((name,))
    if hint is None:
        settle_extra(body, (name,), ctx)
    elif body[name] is None or body[name] in hint.get("x-neutral", ()) or _advises(hint.get("x-advisory"), body[name]):
        settle_unsupported(body, (name,), ctx, "not every provider behind litellm takes it")


def _advises(advisory: object, value: object) -> bool:
    return advisory is True or (isinstance(advisory, list) and value in advisory)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_completion(reply, READING, ctx)


def read_stream(ctx: Context) -> ChatReader:
    return ChatReader(READING, ctx)


def read_fault(found: Reply, ctx: Context) -> Fault:
    return read_native(found, ctx)


CALLED = Called(write_request, read_reply, read_stream, read_fault)
