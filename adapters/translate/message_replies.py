"""Translates whole replies between Messages and chat, in hub form.

    Messages                            chat
    ----------------------------------  ----------------------------------------------------------------
    thinking, redacted_thinking         reasoning_content, reasoning_signature, reasoning_details
    text                                content; its citations: `citations` with positions, `annotations`
    tool_use                            tool_calls
    stop_reason, stop_sequence          finish_reason (`stop_reasons`)
    stop_details.explanation            refusal
    usage, its service_tier             usage, service_tier (`message_usage`)

Sources: anthropic 2.12.0, Message; OpenAI OpenAPI 2.3, CreateChatCompletionResponse.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import add_citations, annotate, cite_blocks, place_citations
from dragoman.adapters.chat.reasoning import set_reasoning
from dragoman.adapters.chat.spoken_answers import replace_audio
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.inputs import read_input
from dragoman.adapters.paths import Path

from .answer_blocks import IN_ORDER, NO_PLACE, RANKS, list_call_keys, to_reasoning
from .chat_to_messages import BLOCKS, FREE_TEXT
from .chat_to_turns import to_reasoning_blocks
from .message_citations import list_placed_citations
from .message_envelope import begin_chat, begin_message, explain_refusal, read_refusal
from .message_tools import list_long_names
from .message_usage import record_usage, to_chat_counts
from .replies import (
    CALL_KEYS,
    CHAT_COUNTS,
    CHOICE_KEYS,
    MESSAGE_KEYS,
    NO_TEXT,
    SECOND_CALL,
    list_legacy_call,
    says_only_text,
    take_first_choice,
)
from .stop_reasons import ENDING_KEYS, PAUSED, read_stop_reason, to_finish_reason
from .unused_keys import record_unused_keys

__all__ = ["message_to_chat_reply", "to_message"]

_PROTOCOL = "Messages"
_CHOICE_KEYS = CHOICE_KEYS | ENDING_KEYS
_MESSAGE_KEYS = MESSAGE_KEYS | {"citations"}


def message_to_chat_reply(reply: JsonObject, ctx: Context) -> JsonObject:
    """Translate a message to a chat reply."""
    message = _to_chat_message(reply["content"], ctx)
    if (refusal := read_refusal(reply)) is not None:
        message["refusal"] = refusal
        ctx.receipt.record_conversion(("stop_details",), "the explanation is a refusal in chat")
    if reply["stop_reason"] == "pause_turn":
        ctx.receipt.record_drop(("stop_reason",), PAUSED)
    ending = to_finish_reason(reply["stop_reason"], reply.get("stop_sequence"))
    ctx.receipt.record_conversion(("content",), "content blocks become a message", after=("choices",))
    usage = to_chat_counts(reply.get("usage"))
    if usage is not None:
        ctx.receipt.record_conversion(("usage",), CHAT_COUNTS)
    return {
        **begin_chat(reply, "chat.completion", ctx),
        "choices": [{"index": 0, "message": message, "logprobs": None, **ending}],
        **({} if usage is None else {"usage": usage}),
    }


def _to_chat_message(content: list[JsonObject], ctx: Context) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    thoughts: list[JsonObject] = []
    citations: list[JsonObject] = []
    rank = 0
    for i, block in enumerate(content):
        kind, path = block["type"], ("content", i)
        if kind not in RANKS:
            ctx.receipt.record_drop(path, f"{NO_PLACE} {kind}")
            continue
        if RANKS[kind] < rank:
            ctx.receipt.record_conversion(path, IN_ORDER, "loss")
        rank = max(rank, RANKS[kind])
        if kind == "text":
            before = message["content"] or ""
            given = block.get("citations") or []
            citations += place_citations(given, len(before), block["text"])
            message["content"] = before + block["text"]
            record_unused_keys(block, ("type", "text", "citations"), path, ctx, "chat")
        elif kind == "tool_use":
            message.setdefault("tool_calls", []).append(_to_chat_call(block, path, ctx))
        else:
            thoughts += to_reasoning(block, path, ctx)
    add_citations(message, citations)
    annotate(message)
    set_reasoning(message, thoughts)
    return message


def _to_chat_call(block: JsonObject, path: Path, ctx: Context) -> JsonObject:
    record_unused_keys(block, list_call_keys(block), path, ctx, "chat")
    function = {"name": block["name"], "arguments": orjson.dumps(block["input"]).decode()}
    return {"id": block["id"], "type": "function", "function": function, **copy_carried_keys(block)}


def to_message(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
    """Translate a chat reply to a message, the answer to `request`, the Messages request in hub form.

    Raises Fault if a call has no name, or arguments that are no JSON object.
    """
    position, choice = take_first_choice(reply["choices"], ctx)
    refused = bool(choice["message"].get("refusal"))
    stop = read_stop_reason(choice, request.get("stop_sequences") or (), refused=refused)
    if says_only_text(choice):
        content = [{"type": "text", "text": choice["message"]["content"]}]
    else:
        content = _restore_names(_to_blocks(choice, ("choices", position), ctx), list_long_names(request))
    ctx.receipt.record_conversion(("choices",), BLOCKS, after=("content",))
    made = begin_message(reply, ctx)
    made["content"], made["stop_reason"], made["stop_sequence"] = content, stop.reason, stop.sequence
    if refused and stop.reason == "refusal":
        made |= explain_refusal(choice["message"]["refusal"])
    record_usage(reply.get("usage"), reply.get("service_tier"), ctx)
    return made


def _to_blocks(choice: JsonObject, path: Path, ctx: Context) -> list[JsonObject]:
    message, inner = choice["message"], (*path, "message")
    record_unused_keys(choice, _CHOICE_KEYS, path, ctx, _PROTOCOL)
    record_unused_keys(message, _MESSAGE_KEYS, inner, ctx, _PROTOCOL)
    for key in ("content", "refusal"):
        if (choice.get("logprobs") or {}).get(key):
            ctx.receipt.record_drop((*path, "logprobs", key), "Messages has no log probabilities")
    if message.get("audio"):
        message = replace_audio(message, inner, ctx)
    blocks = [*to_reasoning_blocks(message), *_to_text_blocks(message, inner, ctx)]
    if message.get("function_call") and message.get("tool_calls"):
        ctx.receipt.record_drop((*inner, "function_call"), SECOND_CALL)
    calls = message.get("tool_calls") or list_legacy_call(message, ctx)
    return blocks + [_to_tool_use(call, (*inner, "tool_calls", k), ctx) for k, call in enumerate(calls)]


def _restore_names(blocks: list[JsonObject], names: Mapping[str, str]) -> list[JsonObject]:
    """The blocks with the names that the client gave its tools."""
    called = {"tool_use"} if names else set()
    return [{**one, "name": names.get(one["name"], one["name"])} if one["type"] in called else one for one in blocks]


def _to_text_blocks(message: JsonObject, path: Path, ctx: Context) -> list[JsonObject]:
    text, cited = message.get("content") or "", list_placed_citations(message, path, ctx)
    if message.get("refusal"):
        ctx.receipt.record_conversion((*path, "refusal"), "a refusal is a text in Messages")
        text += message["refusal"]
    found = cite_blocks(text, cited)
    blocks = [one for one in found if one["text"]]
    if len(blocks) < len(found):
        ctx.receipt.record_drop((*path, "citations"), NO_TEXT)
    return blocks


def _to_tool_use(call: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = "custom" if "custom" in call else "function"
    said = call[kind]
    if not said["name"]:
        raise invalid_reply("a tool call has no name")
    record_unused_keys(call, CALL_KEYS, path, ctx, _PROTOCOL)
    record_unused_keys(said, ("name", "arguments", "input"), (*path, kind), ctx, _PROTOCOL)
    reason = FREE_TEXT if kind == "custom" else "the text of the arguments becomes an object"
    ctx.receipt.record_conversion((*path, kind), reason)
    place = (*path, kind, "arguments")
    given = {"input": said["input"]} if kind == "custom" else _read_arguments(said["arguments"], place, ctx)
    return {"type": "tool_use", "id": call["id"], "name": said["name"], "input": given, **copy_carried_keys(call)}


def _read_arguments(arguments: str, path: Path, ctx: Context) -> JsonObject:
    found = read_input(arguments, path, ctx.receipt)
    if found is None:
        text = "the provider's call has arguments that are no JSON object"
        raise Fault("upstream_invalid_response", text, code="upstream_malformed_generation")
    return found
