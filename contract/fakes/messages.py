"""Messages: the request converted to chat, so that one model serves all protocols, and the answer as a message or as
its events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue

from .answers import Answer, ModelRequest, read_text, select_objects, split_words

__all__ = ["build_message_documents", "build_token_count", "convert_message_to_chat"]

_SIGNATURE = "ZmFrZS1zaWduYXR1cmU="
_CHOICES: Mapping[str, str] = {"any": "required", "auto": "auto", "none": "none"}
_THINKS = ("enabled", "adaptive")


def convert_message_to_chat(body: Mapping[str, JsonValue]) -> JsonObject:
    """Convert the request to chat, with the fields that the fake's model reads."""
    system = read_text({"content": body.get("system")})
    first = [{"role": "system", "content": system}] if system else []
    found = [one for message in select_objects(body.get("messages")) for one in _iterate_messages(message)]
    chat: JsonObject = {"messages": [*first, *found]}
    chat["tools"] = [_convert_tool(tool) for tool in select_objects(body.get("tools")) if "input_schema" in tool]
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping):
        named = {"type": "function", "function": {"name": choice.get("name")}}
        chat["tool_choice"] = _CHOICES.get(str(choice.get("type")), named)
        chat["parallel_tool_calls"] = not choice.get("disable_parallel_tool_use")
    thinking, output = body.get("thinking"), body.get("output_config")
    if isinstance(thinking, Mapping):
        chat["reasoning_effort"] = "high" if thinking.get("type") in _THINKS else "none"
    elif isinstance(output, Mapping):
        chat["reasoning_effort"] = output.get("effort")
    wanted = output.get("format") if isinstance(output, Mapping) else body.get("output_format")
    if isinstance(wanted, Mapping):
        chat["response_format"] = {"type": wanted.get("type"), "json_schema": wanted}
    chat["max_completion_tokens"] = body.get("max_tokens")
    chat["stop"] = body.get("stop_sequences")
    return chat


def _convert_tool(tool: Mapping[str, JsonValue]) -> JsonObject:
    return {"type": "function", "function": {"name": tool.get("name"), "parameters": tool.get("input_schema")}}


def _iterate_messages(message: Mapping[str, JsonValue]) -> Iterator[JsonObject]:
    """The results of tools as messages of their own, before the text."""
    blocks = select_objects(message.get("content"))
    for block in blocks:
        if block.get("type") == "tool_result":
            yield {"role": "tool", "content": read_text(block)}
    if isinstance(message.get("content"), str) or any(block.get("type") != "tool_result" for block in blocks):
        yield {"role": message.get("role"), "content": read_text(message)}


def build_token_count(_answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the reply of `count_tokens`: one token for each word."""
    return [{"input_tokens": _count_read(request)}]


def build_message_documents(answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the JSON documents of the reply: the events of a stream, or one message. The caller may alter them."""
    blocks = list(_iterate_blocks(answer))
    if not request.stream:
        return [_build_message(answer, request, blocks)]
    return list(_iterate_events(answer, request, blocks))


def _form(request: ModelRequest) -> JsonObject:
    return load_dialect(request.dialect).reply_form("messages", request.profile)


def _iterate_blocks(answer: Answer) -> Iterator[JsonObject]:
    if answer.reasoning:
        yield {"type": "thinking", "thinking": answer.reasoning, "signature": _SIGNATURE}
    yield from (dict(block) for block in answer.blocks)
    text = answer.text or answer.refusal
    if text or not (answer.calls or answer.blocks):
        yield {"type": "text", "text": text}
    for call in answer.calls:
        id_ = call.id.replace("call_", "toolu_", 1)
        yield {"type": "tool_use", "id": id_, "name": call.name, "input": _parse_input(call.arguments)}


def _parse_input(arguments: str) -> JsonValue:
    """The input of a tool: the arguments as an object, or as the text that they are."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _build_message(answer: Answer, request: ModelRequest, blocks: list[JsonObject]) -> JsonObject:
    whole = _build_head(request) | {"content": blocks} | _build_ending(answer, request)
    return {**whole, "usage": _build_usage(answer, request), **(answer.extra or {})}


def _build_head(request: ModelRequest) -> JsonObject:
    id_ = str(_form(request)["id"]).format(number=request.number)
    head = {"id": id_, "type": "message", "role": "assistant", "model": request.model, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None}


def _build_ending(answer: Answer, request: ModelRequest) -> JsonObject:
    finish = "stop_sequence" if answer.stopped else _form(request)["finish"].get(answer.finish, answer.finish)
    finish = "refusal" if answer.refusal else finish
    return {"stop_reason": finish, "stop_sequence": answer.stopped or None}


def _count_read(request: ModelRequest) -> int:
    return sum(len(read_text(message).split()) for message in request.messages) + 1


def _build_usage(answer: Answer, request: ModelRequest) -> JsonObject:
    """Count one token for each word."""
    spoken = answer.reasoning + answer.text + answer.refusal
    written = len(split_words(spoken)) + sum(len(call.arguments.split()) + 1 for call in answer.calls)
    thoughts = len(split_words(answer.reasoning))
    details = {"output_tokens_details": {"thinking_tokens": thoughts}} if thoughts else {}
    whole = {"input_tokens": _count_read(request), **_form(request).get("usage", {}), "output_tokens": written}
    return whole | details


def _iterate_events(answer: Answer, request: ModelRequest, blocks: list[JsonObject]) -> Iterator[JsonObject]:
    usage = _build_usage(answer, request)
    yield {"type": "message_start", "message": {**_build_head(request), "usage": {**usage, "output_tokens": 1}}}
    for index, block in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": _empty_block(block)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _iterate_deltas(block, answer, request):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": _build_ending(answer, request), "usage": usage, **(answer.extra or {})}
    yield {"type": "message_stop"}


_EMPTY: Mapping[str, JsonObject] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def _empty_block(block: JsonObject) -> JsonObject:
    """The block as it starts; blocks of other types come complete."""
    citations: JsonObject = {"citations": []} if "citations" in block else {}
    return {**block, **_EMPTY.get(block["type"], {}), **citations}


def _iterate_deltas(block: JsonObject, answer: Answer, request: ModelRequest) -> Iterator[JsonObject]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in split_words(block["text"]))
            yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations", ()))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in split_words(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in re.findall(r".{1,6}", _find_arguments(block, answer), re.DOTALL):
                yield {"type": "input_json_delta", "partial_json": piece}


def _find_arguments(block: JsonObject, answer: Answer) -> str:
    """The arguments of a block's call as the model wrote them."""
    number = block["id"].removeprefix("toolu_")
    return next(call.arguments for call in answer.calls if call.id.removeprefix("call_") == number)
