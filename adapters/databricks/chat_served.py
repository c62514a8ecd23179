"""The databricks dialect of chat, served.

The address `/serving-endpoints/{name}/invocations` names the model; at other addresses the body does. Without `stream`,
a request asks for a stream in the `documented` profile, and for a whole reply in `actual`. Reasoning is a block of the
content in `actual`; the documented message does not have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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
from .reasoning_block import REASONING_KEYS, DeltaBlocks, make_reasoning_block

__all__ = ["SERVED"]

MakeBlock: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject | None]
"""Makes the reasoning block of a choice's message or delta."""

_FINISH = {"function_call": "tool_calls"}


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator("databricks/chat.request", ctx.profile))
    body = dict(call.body)
    set_model_from_path(body, call, ctx)
    fill_stream_defaults(body, ctx)
    body["messages"] = [_convert_message(message, ("messages", i), ctx) for i, message in enumerate(body["messages"])]
    return body


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = message.get("content")
    if not isinstance(content, list) or not any(part.get("type") == "reasoning" for part in content):
        return message
    message = dict(message)
    for kind in flatten_content(message):
        ctx.receipt.record_drop((*path, "content"), f"a message with reasoning cannot have content of type {kind}")
    message.setdefault("content", None)
    ctx.receipt.record_conversion((*path, "content"), "reasoning blocks are separate fields in the hub", after=path)
    return message


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    body = _write_choices(reply, "message", lambda _choice, message: make_reasoning_block(message), ctx)
    if ctx.profile == "documented":
        body["object"] = "chat.completions"
    return Reply(200, body)


def _write_choices(body: JsonObject, part: str, make_block: MakeBlock, ctx: Context) -> JsonObject:
    def rewrite(choice: JsonObject, holder: JsonObject, path: Path) -> None:
        write_finish_reason(choice, _FINISH, path, ctx)
        drop_nulls(choice, "logprobs")
        move_refusal_to_content(holder, (*path, part), ctx)
        drop_empty(holder)
        _write_reasoning(holder, make_block(choice, holder), (*path, part), ctx)

    body = rewrite_choices(body, part, rewrite)
    if body.get("usage"):
        body["usage"] = flatten_reasoning_tokens(body["usage"])
    return body


def _write_reasoning(holder: JsonObject, block: JsonObject | None, path: Path, ctx: Context) -> None:
    given = [name for name in REASONING_KEYS if name in holder]
    for name in given:
        del holder[name]
    if block is None:
        return
    if ctx.profile == "documented":
        for name in given:
            ctx.receipt.record_drop((*path, name), "the documented message does not have it")
        return
    blocks: list[Any] = [block]
    if holder.get("content"):
        blocks.append({"type": "text", "text": holder["content"]})
    holder["content"] = blocks


def write_stream(ctx: Context) -> RenderingStreamWriter:
    blocks = DeltaBlocks()

    def render(chunk: JsonObject) -> JsonObject:
        return _write_choices(chunk, "delta", lambda choice, delta: blocks.make(choice.get("index", 0), delta), ctx)

    return RenderingStreamWriter(error_event, render, "with the finish")


SERVED = Served(read_request, write_reply, write_stream, write_fault)
