"""Converts chat messages to the items of a Responses input.

An assistant's message becomes several items: its reasoning, its text, its calls, in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.chat.messages import extract_text
from dragoman.adapters.chat.spoken_answers import write_transcripts
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, nest_places

from .parts import list_part_places, to_responses_parts
from .reasoning import list_reasoning
from .unused_keys import record_unused_keys

__all__ = ["add_call_ids", "drop_position", "to_items"]

_PROTOCOL = "Responses"
_INSTRUCTING = ("system", "developer")
_SAID = ("role", "content")
_REASONING = ("reasoning_content", "reasoning_signature", "reasoning_details")
_USED = {
    "tool": (*_SAID, "tool_call_id"),
    "assistant": (*_SAID, *_REASONING, "refusal", "tool_calls"),
}
_REASONING_PLACES: Places = [
    (("reasoning_content",), ("content",)),
    (("reasoning_content",), ("content", 0, "text")),
    (("reasoning_signature",), ("encrypted_content",)),
]
_Placed: TypeAlias = tuple[JsonObject, Places]
"""An item, and pairs of a path in its message and the path in the item."""


def to_items(messages: list[JsonObject], ctx: Context) -> tuple[str | None, list[JsonObject]]:
    """Convert chat messages to instructions, from a first system or developer message, and Responses items.

    If no other message has anything to say, the first one becomes an item: OpenAI refuses an empty input. Raises Fault,
    with the path as the client wrote it.
    """
    instructions: str | None = None
    items: list[JsonObject] = []
    places: Places = [(("messages",), ("input",))]
    free = _list_free_text_calls(messages)
    for i, message in enumerate(write_transcripts(list(add_call_ids(messages, ctx)), ctx)):
        path: Path = ("messages", i)
        record_unused_keys(message, _USED.get(str(message.get("role")), _SAID), path, ctx, _PROTOCOL)
        if i == 0 and message.get("role") in _INSTRUCTING:
            instructions = _read_instructions(message.get("content"), (*path, "content"), ctx)
            continue
        for item, inner in _convert_message(message, path, free, ctx):
            places += nest_places([*inner, ((), ())], path, ("input", len(items)))
            items.append(item)
    ctx.receipt.record_conversion(("messages",), "messages become items", after=("input",))
    if instructions is not None and items:
        places.append((("messages", 0, "content"), ("instructions",)))
        ctx.receipt.record_conversion(
            ("messages", 0), "the first system message becomes the parameter instructions", after=("instructions",)
        )
    elif instructions is not None:
        items = [{"type": "message", "role": messages[0]["role"], "content": instructions}]
        places.append((("messages", 0), ("input", 0)))
        instructions = None
    ctx.receipt.map_paths(places)
    return instructions, items


def add_call_ids(messages: list[JsonObject], ctx: Context) -> Iterator[JsonObject]:
    """The messages; each deprecated `function_call` and its result get an id. Raises Fault if a result has no call."""
    call_id: str | None = None
    name: Any = None  # of the last call
    for i, message in enumerate(messages):
        kept = {key: value for key, value in message.items() if key != "function_call"}
        if message.get("function_call"):
            call_id, name = ctx.new_id("call"), message["function_call"]["name"]
            call = {"id": call_id, "type": "function", "function": message["function_call"]}
            ctx.receipt.record_conversion(("messages", i, "function_call"), "it becomes a tool call with an id")
            calls = [*(message.get("tool_calls") or ()), call]
            old, new = ("messages", i, "function_call"), ("messages", i, "tool_calls", len(calls) - 1)
            ctx.receipt.map_paths([(old, new), (old, (*new, "function"))])
            yield {**kept, "tool_calls": calls}
        elif message.get("role") == "function":
            if call_id is None:
                text = f"messages[{i}] answers no earlier function call"
                raise Fault("invalid_request", text, ("messages", i, "name"), message.get("name"), code="invalid_value")
            before, after = ("messages", i, "name"), ("messages", i, "tool_call_id")
            weight: Weight = "form" if kept.pop("name") == name else "loss"
            ctx.receipt.record_conversion(before, "the result has the id of the call before it", weight, after=after)
            ctx.receipt.map_paths([(before, after)])
            yield {**kept, "role": "tool", "tool_call_id": call_id, "content": message.get("content") or ""}
        else:
            yield message


def drop_position(call: JsonObject, path: Path, ctx: Context) -> None:
    """Record that a call at `path` loses the position that it has in streams."""
    if call.get("index") is not None:
        ctx.receipt.record_drop((*path, "index"), "a call in a request needs no position", "form")


def _read_instructions(content: Any, path: Path, ctx: Context) -> str:
    for i, part in enumerate(content if isinstance(content, list) else ()):
        record_unused_keys(part, ("type", "text"), (*path, i), ctx, _PROTOCOL)
    return extract_text(content)


def _list_free_text_calls(messages: list[JsonObject]) -> frozenset[Any]:
    """The ids of the calls of custom tools, whose results are items of their own type."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    return frozenset(call["id"] for call in calls if call.get("type") == "custom")


def _convert_message(message: JsonObject, path: Path, free: frozenset[Any], ctx: Context) -> list[_Placed]:
    """Convert a message to items, each with pairs of a path in the message and its path in the item."""
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return _convert_assistant_message(message, path, ctx)
    parts, name = content, "output" if role == "tool" else "content"
    places: Places = [(("content",), (name,))]
    if isinstance(content, list):
        parts = to_responses_parts(content, (*path, "content"), ctx)
        places += nest_places(list_part_places(content), ("content",), (name,))
    if role == "tool":
        kind = "custom_tool_call_output" if message.get("tool_call_id") in free else "function_call_output"
        item = {"type": kind, "call_id": message.get("tool_call_id"), "output": parts}
        return [(item, [*places, (("tool_call_id",), ("call_id",))])]
    return [({"type": "message", "role": role, "content": parts}, places)]


def _convert_assistant_message(message: JsonObject, path: Path, ctx: Context) -> list[_Placed]:
    items: list[_Placed] = [
        (item, [(("reasoning_details", k), ())] if message.get("reasoning_details") else _REASONING_PLACES)
        for k, item in enumerate(list_reasoning(message))
    ]
    parts, places = _to_assistant_parts(message.get("content"), (*path, "content"), ctx)
    if message.get("refusal"):
        places.append((("refusal",), ("content", len(parts))))
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    if parts:
        items.append(({"type": "message", "role": "assistant", "content": parts}, places))
    for k, call in enumerate(message.get("tool_calls") or ()):
        items.append(_to_responses_call(call, ("tool_calls", k), path, ctx))
    if not items:
        ctx.receipt.record_drop(path, "the message says nothing", "form")
    return items


def _to_assistant_parts(content: Any, path: Path, ctx: Context) -> tuple[list[JsonObject], Places]:
    """Convert an assistant's content to parts, without empty texts."""
    is_list = isinstance(content, list)
    parts: list[JsonObject] = []
    places: Places = []
    for i, part in enumerate(content if is_list else [{"type": "text", "text": content}]):
        key = "refusal" if part.get("type") == "refusal" else "text"
        record_unused_keys(part, ("type", key), (*path, i), ctx, _PROTOCOL)
        if part.get(key):
            places.append((("content", i) if is_list else ("content",), ("content", len(parts))))
            made = {"type": key} if key == "refusal" else {"type": "output_text", "annotations": []}
            parts.append({**made, key: part[key]})
    return parts, places


def _to_responses_call(call: JsonObject, place: Path, path: Path, ctx: Context) -> _Placed:
    """Convert the call at `place` in the message at `path`."""
    kind = "custom" if call.get("type") == "custom" else "function"
    key = "input" if kind == "custom" else "arguments"
    said = call[kind]
    carried = copy_carried_keys(call)
    record_unused_keys(call, ("id", "type", "index", kind, *carried), (*path, *place), ctx, _PROTOCOL)
    record_unused_keys(said, ("name", key), (*path, *place, kind), ctx, _PROTOCOL)
    drop_position(call, (*path, *place), ctx)
    item_type = "custom_tool_call" if kind == "custom" else "function_call"
    item = {"type": item_type, "call_id": call["id"], "name": said["name"], key: said[key], **carried}
    places: Places = [(("id",), ("call_id",)), ((kind, "name"), ("name",)), ((kind, key), (key,))]
    places += [*(((name,), (name,)) for name in carried), ((), ())]
    return item, nest_places(places, place, ())
