"""The items of a Responses input as chat messages.

An assistant's turn is one message in chat, and several items in Responses: its reasoning, its text, its calls. Adjacent
items of one turn become one message.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import extract_text, order_tool_results
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path

from .parts import to_chat_parts
from .reasoning import join_reasoning
from .tools import ADDITIONAL_TOOLS, encode_free_text, flatten_name
from .unused_keys import record_unused_keys

__all__ = ["to_messages"]

_CALLS = {"function_call", "custom_tool_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_LISTINGS = {"mcp_list_tools"}  # what a provider's own server offered
_SEE_NEXT_MESSAGE = "The result is shown in the next message."
_ITEM_KEYS = ("type", "id", "status")  # what an item says of itself
_CALL_KEYS = (*_ITEM_KEYS, "call_id", "name", "namespace")
_USED = {
    "message": (*_ITEM_KEYS, "role", "content"),
    "reasoning": (*_ITEM_KEYS, "summary", "content", "encrypted_content"),
    "function_call": (*_CALL_KEYS, "arguments"),
    "custom_tool_call": (*_CALL_KEYS, "input"),
    **dict.fromkeys(_OUTPUTS, (*_ITEM_KEYS, "call_id", "output")),
}
_SEPARATOR = "\n\n"  # two messages of one turn


def to_messages(items: str | list[JsonObject], ctx: Context) -> list[JsonObject]:
    """A Responses input as chat messages. Raises Fault, its path as the client wrote it."""
    if isinstance(items, str):
        ctx.receipt.record_conversion(("input",), "the input is one user message", after=("messages",))
        ctx.receipt.map_paths([(("input",), ("messages",)), (("input",), ("messages", 0, "content"))])
        return [{"role": "user", "content": items}]
    conversation = _Conversation(ctx)
    for i, item in enumerate(items):
        conversation.add(item, ("input", i))
    conversation.close()
    ctx.receipt.record_conversion(("input",), "items are messages in chat", after=("messages",))
    ctx.receipt.map_paths([(("input",), ("messages",)), *conversation.places])
    return order_tool_results(conversation.messages, ctx)


class _Conversation:
    """Chat messages in the making; `places` pairs each item's path with that of its message."""

    def __init__(self, ctx: Context) -> None:
        self.messages: list[JsonObject] = []
        self.places: list[tuple[Path, Path]] = []
        self._ctx = ctx
        self._turn: JsonObject | None = None  # the assistant's message that further items may join
        self._thoughts: list[tuple[JsonObject, Path]] = []  # reasoning that waits for the message which it led to
        self._calls: set[str] = set()

    def add(self, item: JsonObject, path: Path) -> None:
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        if kind in _USED:
            record_unused_keys(item, _USED[kind], path, self._ctx, "chat")
        if kind == "reasoning":
            self._turn = None
            self._thoughts.append((item, path))
        elif kind in _CALLS or (kind == "message" and item.get("role") == "assistant"):
            self._join_turn(str(kind), item, path)
        elif kind == "message":
            self._push({"role": item.get("role"), "content": self._convert_content(item, path)}, path)
        elif kind in _OUTPUTS:
            self._add_result(item, path)
        elif kind == ADDITIONAL_TOOLS:
            self._turn = None  # its tools are among the request's
        elif kind == "item_reference":
            text = f"{format_path(path)} refers to a stored item, which the model's provider cannot look up"
            raise Fault("unsupported_parameter", text, path, code="unsupported_parameter")
        elif isinstance(kind, str) and (kind.endswith("_call") or kind in _LISTINGS):
            self._ctx.receipt.record_drop(path, f"chat has no place for {kind} items")
        else:
            text = f"{format_path(path)}.type {kind!r} is not known"
            raise Fault("invalid_request", text, (*path, "type"), kind, code="invalid_value")

    def close(self) -> None:
        """Leave out reasoning that led to nothing: chat has no message of that kind."""
        for _, path in self._thoughts:
            self._ctx.receipt.record_drop(path, "chat has no place for reasoning without an answer or a call")
        self._thoughts = []

    def _push(self, message: JsonObject, path: Path) -> None:
        self._turn = message if message["role"] == "assistant" else None
        if self._turn is None:
            self.close()
        self.messages.append(message)
        self._record_place(path)

    def _record_place(self, path: Path) -> None:
        self.places.append((path, ("messages", len(self.messages) - 1)))

    def _convert_content(self, item: JsonObject, path: Path) -> Any:
        content = item.get("content")
        return to_chat_parts(content, (*path, "content"), self._ctx) if isinstance(content, list) else content

    def _join_turn(self, kind: str, item: JsonObject, path: Path) -> None:
        turn = self._turn
        if turn is None or (kind == "message" and turn.get("tool_calls")):
            turn = self._begin_turn(path)
        else:
            self._record_place(path)
        if kind == "message":
            self._join_text(turn, item, path)
        else:
            turn.setdefault("tool_calls", []).append(_to_chat_call(item))
            self._calls.add(str(item.get("call_id")))

    def _join_text(self, turn: JsonObject, item: JsonObject, path: Path) -> None:
        content = item.get("content")
        parts = content if isinstance(content, list) else [{"type": "output_text", "text": content or ""}]
        for i, part in enumerate(parts):
            record_unused_keys(part, ("type", "text", "refusal"), (*path, "content", i), self._ctx, "chat")
        text = "".join(str(part.get("text", "")) for part in parts if part.get("type") != "refusal")
        refusal = "".join(str(part.get("refusal", "")) for part in parts if part.get("type") == "refusal")
        if text or not refusal:
            turn["content"] = f"{turn['content']}{_SEPARATOR}{text}" if turn.get("content") else text
        if refusal:
            turn["refusal"] = (turn.get("refusal") or "") + refusal

    def _begin_turn(self, path: Path) -> JsonObject:
        turn: JsonObject = {"role": "assistant", "content": None}
        self._push(turn, path)
        join_reasoning(turn, self._thoughts, self._ctx)
        for _, its_path in self._thoughts:
            self._record_place(its_path)
        self._thoughts = []
        return turn

    def _add_result(self, item: JsonObject, path: Path) -> None:
        call_id = item.get("call_id")
        if call_id not in self._calls:
            text = f"{format_path(path)}.call_id answers no earlier function call"
            raise Fault("invalid_request", text, (*path, "call_id"), call_id, code="invalid_value")
        output = item.get("output")
        if isinstance(output, list):
            content: Any = to_chat_parts(output, (*path, "output"), self._ctx)
        else:
            content = output if isinstance(output, str) else orjson.dumps(output).decode()
        shown = [part for part in content if part["type"] != "text"] if isinstance(content, list) else []
        text = (extract_text(content) or _SEE_NEXT_MESSAGE) if shown else content
        self._push({"role": "tool", "tool_call_id": call_id, "content": text}, path)
        if shown:
            self._ctx.receipt.record_conversion(
                (*path, "output"), "tools say only text in chat: what they show comes behind"
            )
            self._push({"role": "user", "content": shown}, path)


def _to_chat_call(item: JsonObject) -> JsonObject:
    name = flatten_name(item.get("namespace"), str(item.get("name")))
    arguments = encode_free_text(item.get("input")) if item.get("type") == "custom_tool_call" else item.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {"id": item.get("call_id"), "type": "function", "function": {"name": name, "arguments": text}}
