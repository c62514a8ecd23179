"""The mindie dialect of chat, served.

In the `documented` profile finish reasons are the reference's (`eos_token`, `length`, `stop_sequence`), streams report
no usage, and messages hold a role and text, nothing else.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.answers import each_choice, without_nulls, without_refusal, written_finish
from dragoman.adapters.chat.messages import text_of
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import RenderingWriter
from dragoman.adapters.dialect import Served
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import Judge, judge

from .faults import error_body, write_fault

__all__ = ["SERVED"]

_FINISH = {
    "documented": {
        "stop": "eos_token",
        "tool_calls": "eos_token",
        "function_call": "eos_token",
        "content_filter": "stop_sequence",
    },
    "actual": {"content_filter": "stop_sequence", "function_call": "tool_calls"},
}
_FINISH["native"] = _FINISH["actual"]

_BEYOND_DOCUMENTED = ("tool_calls", "reasoning_content", "reasoning_signature", "annotations", "audio", "function_call")


def read_request(call: Call, ctx: Context) -> JsonObject:
    rules = judge("mindie/chat.request", ctx.profile)
    check_request(call.body, rules, ctx.receipt)
    _check_length(call.body["messages"], rules)
    body = dict(call.body)
    if body.get("stream") and ctx.profile != "documented" and "stream_options" not in body:
        ctx.receipt.filled(("stream_options",), "streams of this dialect report usage")
        body["stream_options"] = {"include_usage": True}
    return body


def _check_length(messages: list[JsonObject], rules: Judge) -> None:
    most = rules.schema["properties"]["messages"].get("x-max-characters")
    if most is None:
        return
    characters = sum(len(text_of(message.get("content"))) for message in messages)
    if characters > most:
        text = f"messages must have at most {most} characters, got {characters}"
        raise Fault("invalid_request", text, ("messages",), code="string_above_max_length")


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    def rewrite(choice: JsonObject, message: JsonObject, path: Path) -> None:
        _choice(choice, message, (*path, "message"), ctx)
        if message.get("content") is None:
            message["content"] = ""
            ctx.receipt.filled((*path, "message", "content"), "a message has text here, be it empty")
        if ctx.profile != "documented":
            message.setdefault("tool_calls", [])

    return Reply(200, each_choice(reply, "message", rewrite))


def _choice(choice: JsonObject, holder: JsonObject, path: Path, ctx: Context) -> None:
    written_finish(choice, _FINISH[ctx.profile], path[:-1], ctx)
    without_refusal(holder, path, ctx)
    if ctx.profile != "documented":
        return
    without_nulls(choice, "logprobs")
    for name in _BEYOND_DOCUMENTED:
        if name in holder:
            ctx.receipt.dropped((*path, name), "the documented message has no place for it")
            del holder[name]


def write_stream(ctx: Context) -> RenderingWriter:
    def rewrite(choice: JsonObject, delta: JsonObject, path: Path) -> None:
        _choice(choice, delta, (*path, "delta"), ctx)
        if delta or choice["finish_reason"] is None:
            delta.setdefault("role", "assistant")
            delta["content"] = delta.get("content") or ""

    def render(chunk: JsonObject) -> JsonObject:
        return each_choice(chunk, "delta", rewrite)

    return RenderingWriter(error_body, render, "nowhere" if ctx.profile == "documented" else "beside the finish")


SERVED = Served(read_request, write_reply, write_stream, write_fault)
