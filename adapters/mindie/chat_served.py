"""The mindie dialect of chat, served.

In the `documented` profile finish reasons are the reference's (`eos_token`, `length`, `stop_sequence`), streams report
no usage, and messages hold only a role and text.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.reply_rewrites import (
    drop_nulls,
    move_refusal_to_content,
    rewrite_choices,
    write_finish_reason,
)
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import RenderingStreamWriter, UsagePlace
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.dialect import Served
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator
from dragoman.schemas import inherit_rows

from .faults import error_body, write_fault
from .text_length import check_length

__all__ = ["SERVED"]

_ROWS = {
    "documented": {
        "stop": "eos_token",
        "tool_calls": "eos_token",
        "function_call": "eos_token",
        "content_filter": "stop_sequence",
    },
    "actual": {"content_filter": "stop_sequence", "function_call": "tool_calls"},
}
_FINISH = inherit_rows("mindie", _ROWS)

_BEYOND_DOCUMENTED = (
    "tool_calls",
    "reasoning_content",
    "reasoning_signature",
    "reasoning_details",
    "annotations",
    "citations",
    "audio",
    "function_call",
)


def read_request(call: Call, ctx: Context) -> JsonObject:
    rules = load_validator("mindie/chat.request", ctx.profile)
    check_request(call.body, rules)
    check_length(call.body["messages"], rules)
    body = dict(call.body)
    if body.get("stream") and ctx.profile != "documented" and "stream_options" not in body:
        ctx.receipt.record_fill(("stream_options",), "streams of this dialect report usage")
        body["stream_options"] = {"include_usage": True}
    return body


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    def rewrite(choice: JsonObject, message: JsonObject, path: Path) -> None:
        _write_choice(choice, message, (*path, "message"), ctx)
        if message.get("content") is None:
            message["content"] = ""
            ctx.receipt.record_fill((*path, "message", "content"), "the dialect requires text, so it is empty")
        if ctx.profile != "documented":
            message.setdefault("tool_calls", [])

    return Reply(200, rewrite_choices(reply, "message", rewrite))


def _write_choice(choice: JsonObject, holder: JsonObject, path: Path, ctx: Context) -> None:
    write_finish_reason(choice, _FINISH[ctx.profile], path[:-1], ctx)
    move_refusal_to_content(holder, path, ctx)
    if ctx.profile != "documented":
        return
    drop_nulls(choice, "logprobs")
    for name in _BEYOND_DOCUMENTED:
        if name in holder:
            ctx.receipt.record_drop((*path, name), "the documented message does not have it")
            del holder[name]


def write_stream(ctx: Context) -> RenderingStreamWriter:
    changes = StreamChanges(ctx.receipt)

    def rewrite(choice: JsonObject, delta: JsonObject, path: Path) -> None:
        _write_choice(choice, delta, (*path, "delta"), ctx)
        if delta or choice.get("finish_reason") is None:
            if "role" not in delta:
                changes.record_fill((*path, "delta", "role"), "every delta of the dialect has a role")
            delta.setdefault("role", "assistant")
            delta["content"] = delta.get("content") or ""

    def render(chunk: JsonObject) -> JsonObject:
        return rewrite_choices(chunk, "delta", rewrite)

    usage: UsagePlace = "nowhere" if ctx.profile == "documented" else "with the finish"
    return RenderingStreamWriter(error_body, render, usage, ctx.receipt)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
