"""The databricks dialect of chat, served.

The address `/serving-endpoints/{name}/invocations` names the model; at other addresses the body does. Without `stream`,
a request asks for a stream in the `documented` profile, and for a whole reply in `actual`. Reasoning is a block of the
content in `actual`, and a block of text has the citations of its text; the documented message has neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.call_signatures import convert_calls, pack_signature, unpack_signature
from dragoman.adapters.chat.citations import CITATIONS, cite_blocks, take_citations
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
from dragoman.adapters.common.stream_changes import ChangeRecorder, StreamChanges
from dragoman.adapters.dialect import Served
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .call_messages import separate_calls
from .endpoint import fill_stream_defaults, set_model_from_path
from .faults import error_event, write_fault
from .reasoning_block import REASONING_KEYS, DeltaBlocks, make_reasoning_block

__all__ = ["SERVED"]

MakeBlock: TypeAlias = Callable[[JsonObject, JsonObject], tuple[JsonObject | None, int]]
"""Makes the reasoning block of a choice's message or delta, and finds where its text begins in the content."""

_FINISH = {"function_call": "tool_calls"}


def read_request(call: Call, ctx: Context) -> JsonObject:
    body = dict(call.body)
    if ctx.profile == "documented" and isinstance(body.get("messages"), list):
        body["messages"] = separate_calls(body["messages"], ctx)  # the replies have both
    check_request(body, load_validator("databricks/chat.request", ctx.profile))
    set_model_from_path(body, call, ctx)
    fill_stream_defaults(body, ctx)
    body["messages"] = [_convert_message(message, ("messages", i), ctx) for i, message in enumerate(body["messages"])]
    return body


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    message = convert_calls(message, unpack_signature, path, ctx)
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
    make_block: MakeBlock = lambda _choice, message: (make_reasoning_block(message), 0)  # noqa: E731
    body = _write_choices(reply, "message", make_block, ctx, ctx.receipt)
    if ctx.profile == "documented":
        body["object"] = "chat.completions"
        ctx.receipt.record_conversion(("object",), "the documented name for it")
    return Reply(200, body)


def _write_choices(
    body: JsonObject, part: str, make_block: MakeBlock, ctx: Context, changes: ChangeRecorder
) -> JsonObject:
    def rewrite(choice: JsonObject, holder: JsonObject, path: Path) -> None:
        write_finish_reason(choice, _FINISH, path, ctx)
        drop_nulls(choice, "logprobs")
        move_refusal_to_content(holder, (*path, part), ctx)
        drop_empty(holder)
        holder.update(convert_calls(holder, pack_signature, (*path, part), ctx))
        block, start = make_block(choice, holder)
        _write_blocks(holder, block, start, (*path, part), ctx, changes)

    body = rewrite_choices(body, part, rewrite)
    if body.get("usage"):
        body["usage"] = flatten_reasoning_tokens(body["usage"], ctx)
    return body


def _write_blocks(
    holder: JsonObject, block: JsonObject | None, start: int, path: Path, ctx: Context, changes: ChangeRecorder
) -> None:
    """Put reasoning and citations into the content, which becomes a list of blocks if there are any."""
    given = [name for name in REASONING_KEYS if name in holder]
    for name in given:
        del holder[name]
    if ctx.profile == "documented":
        given += [CITATIONS] if holder.pop(CITATIONS, None) else []
        for name in given:
            ctx.receipt.record_drop((*path, name), "the documented message does not have it")
        return
    text, citations = holder.get("content") or "", take_citations(holder)
    if block is not None or citations:
        parts = cite_blocks(text, citations, start) if isinstance(text, str) else text
        holder["content"] = [*([] if block is None else [block]), *(parts if isinstance(parts, list) else [parts])]
    after = (*path, "content")
    for name in given if block is not None else ():
        changes.record_conversion((*path, name), f"a block of the content has the {name}", after=after)
    if citations:
        changes.record_conversion((*path, CITATIONS), "the blocks of the content have the citations", after=after)


def write_stream(ctx: Context) -> RenderingStreamWriter:
    blocks, changes = DeltaBlocks(), StreamChanges(ctx.receipt)

    def make_block(choice: JsonObject, delta: JsonObject) -> tuple[JsonObject | None, int]:
        index = choice.get("index", 0)
        return blocks.make(index, delta), blocks.place_text(index, delta)

    def render(chunk: JsonObject) -> JsonObject:
        return _write_choices(chunk, "delta", make_block, ctx, changes)

    return RenderingStreamWriter(error_event, render, "with the finish", ctx.receipt)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
