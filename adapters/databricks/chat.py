"""The databricks dialect of chat.

Requests: the address names the endpoint, which is the model. The only system message is the first message. Text content
is a string. Tools always have a description and parameters. The service refuses unknown keys, so extra parameters are
dropped.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.chat.call_signatures import convert_calls, pack_signature
from dragoman.adapters.chat.called import chat_called
from dragoman.adapters.chat.messages import (
    are_plain,
    convert_messages,
    convert_refusals,
    drop_known_tool_names,
    drop_silent_answers,
    join_text_parts,
    merge_system_messages,
    order_tool_results,
    rename_developer_role,
)
from dragoman.adapters.chat.reasoning import is_sealed, list_blocks
from dragoman.adapters.common.parameters import clamp_effort, drop_stream_options, fill_stream_flag
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.token_limits import TokenLimitRule
from dragoman.adapters.edits import remove, replace
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .cache_control import drop_cache_control
from .call_messages import separate_calls
from .citations import write_citations
from .endpoint import make_invocation, remove_model
from .faults import WORDS
from .reasoning_block import REASONING_KEYS, make_reasoning_block

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS)

_REPLIED = frozenset({"tool_calls", "reasoning_signature", "reasoning_details"})
"""Keys of messages that come from earlier replies."""

_NO_PARAMETERS = {"type": "object", "properties": {}}


def _rewrite(body: JsonObject, ctx: Context) -> None:
    remove_model(body, ctx)
    drop_stream_options(body, ctx)
    clamp_effort(body, load_validator("databricks/chat.request", ctx.profile), ctx)
    if "n" in body and ctx.target.kind != "provisioned-throughput" and "n" not in ctx.target.takes:
        drop_or_reject(body, ("n",), ctx, "only provisioned throughput endpoints accept it")
    is_plain = are_plain(body["messages"])
    drop_cache_control(body, ctx, ("tools",) if is_plain else ("messages", "tools"))
    messages = merge_system_messages(body["messages"], ctx)
    body["messages"] = messages if is_plain else _convert_messages(messages, ctx)
    _write_tools(body, ctx)


def _make_call(body: JsonObject, ctx: Context, _has_extras: bool) -> Call:
    fill_stream_flag(body, ctx)
    return make_invocation(body, ctx, "/chat/completions")


def _convert_messages(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    messages = drop_silent_answers(order_tool_results(messages, ctx), ctx)
    if ctx.profile == "documented":
        messages = separate_calls(messages, ctx)
    messages = write_citations(convert_refusals(rename_developer_role(messages, ctx), ctx), ctx)
    messages = drop_known_tool_names(join_text_parts(messages, ctx), ctx)
    replied = [i for i, message in enumerate(messages) if not _REPLIED.isdisjoint(message)]
    return convert_messages(messages, replied, lambda message, path: _convert_message(message, path, ctx))


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    if message.get("tool_calls") and message.get("content") in (None, "") and "content" in message:
        ctx.receipt.record_drop((*path, "content"), "it is empty, and the message has tool calls", "form")
        message = {key: value for key, value in message.items() if key != "content"}
    message = convert_calls(message, pack_signature, path, ctx)
    if ctx.profile == "actual" and _is_signed(message):
        message = _move_reasoning_into_content(message, path, ctx)
    return message


def _is_signed(message: JsonObject) -> bool:
    return any(is_sealed(block) or block.get("signature") for block in list_blocks(message))


def _move_reasoning_into_content(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """Return the message with its signed reasoning in the content, where the model's provider verifies it."""
    thought = make_reasoning_block(message)
    given = [name for name in REASONING_KEYS if name in message]
    message = {key: value for key, value in message.items() if key not in given}
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    message["content"] = [thought, *blocks]
    for name in ("content", *given):
        ctx.receipt.record_conversion(
            (*path, name), "signed reasoning is a part of the content", after=(*path, "content")
        )
    ctx.receipt.map_paths(
        [((*path, "content", i), (*path, "content", i + 1)) for i in range(len(blocks))]
        if isinstance(content, list)
        else [((*path, "content"), (*path, "content", 1, "text"))]
    )
    return message


def _write_tools(body: JsonObject, ctx: Context) -> None:
    tools: Any = body.get("tools")
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function")
        if isinstance(function, dict):
            _write_function(body, function, ("tools", i, "function"), ctx)


def _write_function(body: JsonObject, function: JsonObject, path: Path, ctx: Context) -> None:
    for name, default in (("description", ""), ("parameters", _NO_PARAMETERS)):
        if name not in function or function[name] is None:
            ctx.receipt.record_fill((*path, name), "the service requires it")
            replace(body, (*path, name), default)
    if "strict" in function and "strict" not in ctx.target.facts.nested | ctx.target.takes:
        weight: Weight = "loss" if function["strict"] else "form"
        ctx.receipt.record_drop((*path, "strict"), "the model is not known to accept it on Databricks", weight)
        remove(body, (*path, "strict"))


CALLED = chat_called(
    REPLY_RULES,
    token_limit=TokenLimitRule(),
    rewrite=_rewrite,
    reads_citations=True,
    extras="drop",
    names_model=False,
    make_call=_make_call,
)
