"""Converts chat messages to the items of a Responses input.

An assistant's message becomes several items: its reasoning, its text, its calls, in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import extract_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from .parts import to_responses_parts
from .reasoning import list_reasoning
from .unused_keys import record_unused_keys

__all__ = ["to_items"]

_PROTOCOL = "Responses"
_SAID = ("role", "content")
_REASONING = ("reasoning_content", "reasoning_signature", "reasoning_details")
_USED = {
    "tool": (*_SAID, "tool_call_id"),
    "assistant": (*_SAID, *_REASONING, "refusal", "tool_calls"),
}


def to_items(messages: list[JsonObject], ctx: Context) -> tuple[str | None, list[JsonObject]]:
    """Convert chat messages to instructions, from a first system or developer message, and Responses items.

    Raises Fault, with the path as the client wrote it.
    """
    instructions: str | None = None
    items: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    for i, message in enumerate(_add_call_ids(messages, ctx)):
        path: Path = ("messages", i)
        record_unused_keys(message, _USED.get(str(message.get("role")), _SAID), path, ctx, _PROTOCOL)
        if i == 0 and message.get("role") in ("system", "developer"):
            instructions = _read_instructions(message.get("content"), (*path, "content"), ctx)
            places.append((path, ("instructions",)))
            continue
        for item in _convert_message(message, path, ctx):
            places.append((path, ("input", len(items))))
            items.append(item)
    ctx.receipt.record_conversion(("messages",), "messages become items", after=("input",))
    if instructions is not None:
        ctx.receipt.record_conversion(
            ("messages", 0), "the first system message becomes the parameter instructions", after=("instructions",)
        )
    ctx.receipt.map_paths(places)
    return instructions, items


def _add_call_ids(messages: list[JsonObject], ctx: Context) -> Iterator[JsonObject]:
    """The messages; each deprecated `function_call` and its result get an id. Raises Fault if a result has no call."""
    call_id: str | None = None
    for i, message in enumerate(messages):
        kept = {key: value for key, value in message.items() if key != "function_call"}
        if message.get("function_call"):
            call_id = ctx.new_id("call")
            call = {"id": call_id, "type": "function", "function": message["function_call"]}
            ctx.receipt.record_conversion(("messages", i, "function_call"), "it becomes a tool call with an id")
            yield {**kept, "tool_calls": [*(message.get("tool_calls") or ()), call]}
        elif message.get("role") == "function":
            if call_id is None:
                text = f"messages[{i}] answers no earlier function call"
                raise Fault("invalid_request", text, ("messages", i, "name"), message.get("name"), code="invalid_value")
            del kept["name"]
            yield {**kept, "role": "tool", "tool_call_id": call_id, "content": message.get("content") or ""}
        else:
            yield message


def _read_instructions(content: Any, path: Path, ctx: Context) -> str:
    for i, part in enumerate(content if isinstance(content, list) else ()):
        record_unused_keys(part, ("type", "text"), (*path, i), ctx, _PROTOCOL)
    return extract_text(content)


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> list[JsonObject]:
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return _convert_assistant_message(message, path, ctx)
    parts = to_responses_parts(content, (*path, "content"), ctx) if isinstance(content, list) else content
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": parts}]
    return [{"type": "message", "role": role, "content": parts}]


def _convert_assistant_message(message: JsonObject, path: Path, ctx: Context) -> list[JsonObject]:
    items = list(list_reasoning(message))
    parts = _to_assistant_parts(message.get("content"), (*path, "content"), ctx)
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    if parts:
        items.append({"type": "message", "role": "assistant", "content": parts})
    calls = enumerate(message.get("tool_calls") or ())
    return items + [_to_responses_call(call, (*path, "tool_calls", k), ctx) for k, call in calls]


def _to_assistant_parts(content: Any, path: Path, ctx: Context) -> list[JsonObject]:
    """Convert an assistant's content to parts, without empty texts."""
    given = content if isinstance(content, list) else [{"type": "text", "text": content}]
    parts: list[JsonObject] = []
    for i, part in enumerate(given):
        key = "refusal" if part.get("type") == "refusal" else "text"
        record_unused_keys(part, ("type", key), (*path, i), ctx, _PROTOCOL)
        if part.get(key) and key == "refusal":
            parts.append({"type": key, key: part[key]})
        elif part.get(key):
            parts.append({"type": "output_text", "text": part[key], "annotations": []})
    return parts


def _to_responses_call(call: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = "custom" if call.get("type") == "custom" else "function"
    key = "input" if kind == "custom" else "arguments"
    said = call[kind]
    record_unused_keys(call, ("id", "type", "index", kind), path, ctx, _PROTOCOL)
    record_unused_keys(said, ("name", key), (*path, kind), ctx, _PROTOCOL)
    item_type = "custom_tool_call" if kind == "custom" else "function_call"
    return {"type": item_type, "call_id": call["id"], "name": said["name"], key: said[key]}
