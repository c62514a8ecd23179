"""The databricks dialect of chat, served.

The model stands in the address of `/serving-endpoints/{name}/invocations`, else in the body. A request without `stream`
is one without streaming in the `actual` profile, and one with it in the `documented`. Reasoning is a block of the
content in `actual`; the documented message has no place for it.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.content import flatten_content
from dragoman.adapters.chat.reply_rewrites import (
    drop_empty,
    drop_nulls,
    flatten_reasoning_tokens,
    move_refusal_to_content,
    rewrite_choices,
    write_finish_reason,
)
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import RenderingStreamWriter
from dragoman.adapters.dialect import Served
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .endpoint import fill_stream_defaults, set_model_from_path
from .faults import error_event, write_fault

__all__ = ["SERVED"]

_FINISH = {"function_call": "tool_calls"}


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator("databricks/chat.request", ctx.profile))
    body = dict(call.body)
    set_model_from_path(body, call, ctx)
    fill_stream_defaults(body, ctx)
    body["messages"] = [_message(message, ("messages", i), ctx) for i, message in enumerate(body["messages"])]
    return body


def _message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = message.get("content")
    if not isinstance(content, list) or not any(part.get("type") == "reasoning" for part in content):
        return message
    message = dict(message)
    for kind in flatten_content(message):
        ctx.receipt.record_drop((*path, "content"), f"content of type {kind} has no place beside reasoning")
    message.setdefault("content", None)
    ctx.receipt.record_conversion((*path, "content"), "reasoning blocks stand beside the content", after=path)
    return message


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    body = _written(reply, "message", ctx)
    if ctx.profile == "documented":
        body["object"] = "chat.completions"
    return Reply(200, body)


def _written(body: JsonObject, part: str, ctx: Context) -> JsonObject:
    def rewrite(choice: JsonObject, holder: JsonObject, path: Path) -> None:
        write_finish_reason(choice, _FINISH, path, ctx)
        drop_nulls(choice, "logprobs")
        move_refusal_to_content(holder, (*path, part), ctx)
        drop_empty(holder)
        _reasoning(holder, (*path, part), ctx)

    body = rewrite_choices(body, part, rewrite)
    if body.get("usage"):
        body["usage"] = flatten_reasoning_tokens(body["usage"])
    return body


def _reasoning(holder: JsonObject, path: Path, ctx: Context) -> None:
    text, signature = holder.pop("reasoning_content", None), holder.pop("reasoning_signature", None)
    if not text and not signature:
        return
    if ctx.profile == "documented":
        for name in ("reasoning_content", "reasoning_signature"):
            ctx.receipt.record_drop((*path, name), "the documented message has no place for it")
        return
    summary: JsonObject = {"type": "summary_text", "text": text or ""}
    if signature:
        summary["signature"] = signature
    blocks: list[Any] = [{"type": "reasoning", "summary": [summary]}]
    if holder.get("content"):
        blocks.append({"type": "text", "text": holder["content"]})
    holder["content"] = blocks


def write_stream(ctx: Context) -> RenderingStreamWriter:
    def render(chunk: JsonObject) -> JsonObject:
        return _written(chunk, "delta", ctx)

    return RenderingStreamWriter(error_event, render, "with the finish")


SERVED = Served(read_request, write_reply, write_stream, write_fault)
