"""Converts the items of a Responses input to chat messages.

An assistant's turn is one message in chat, and several items in Responses: its reasoning, its text, its calls. Adjacent
items of one turn become one message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import PlainMessages, are_plain_turns, order_tool_results
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path, nest_places
from dragoman.adapters.responses.built_in_tools import BUILT_IN_CALLS, BUILT_IN_RESULTS, read_result

from .answer_blocks import IN_ORDER
from .parts import list_chat_places, to_chat_parts
from .reasoning import join_reasoning
from .tools import ADDITIONAL_TOOLS, encode_free_text, flatten_name
from .unused_keys import ITEM_KEYS, record_unused_keys

__all__ = ["to_messages"]

_CALLS = {"function_call", "custom_tool_call", *BUILT_IN_CALLS}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", *BUILT_IN_RESULTS}
_LISTINGS = {"mcp_list_tools", "tool_search_output"}  # the tools that the provider's side offered
_CARRIED = {"custom_tool_call": "input", **{kind: tool.action for kind, tool in BUILT_IN_CALLS.items()}}
_ANSWER_KEYS = frozenset({"type", "text", "refusal"})
_CONVERTED = "items become messages"
_SEPARATOR = "\n\n"  # between two messages of one turn


def to_messages(items: str | list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert a Responses input to chat messages. Raises Fault, with the path as the client wrote it."""
    if isinstance(items, str):
        ctx.receipt.record_conversion(("input",), "the input becomes one user message", after=("messages",))
        ctx.receipt.map_paths([(("input",), ("messages",)), (("input",), ("messages", 0, "content"))])
        return [{"role": "user", "content": items}]
    if are_plain_turns(items):
        ctx.receipt.record_conversion(("input",), _CONVERTED, after=("messages",))
        ctx.receipt.map_path(("input",), ("messages",))
        return PlainMessages(items)
    conversation = _Conversation(ctx)
    for i, item in enumerate(items):
        conversation.add(item, ("input", i))
    conversation.close()
    ctx.receipt.record_conversion(("input",), _CONVERTED, after=("messages",))
    ctx.receipt.map_paths_below("messages", partial(_list_places, conversation.placed))
    return order_tool_results(conversation.messages, ctx)


_Placed: TypeAlias = tuple[Path, int, Callable[..., Places], tuple[Any, ...]]
"""The path of an item, the position of its message, and a function that pairs paths in the two, with its arguments."""


class _Conversation:
    """Builds chat messages; `placed` says where each item has gone."""

    def __init__(self, ctx: Context) -> None:
        self.messages: list[JsonObject] = []
        self.placed: list[_Placed] = []
        self._ctx = ctx
        self._turn: JsonObject | None = None  # the assistant's message that further items may join
        self._thoughts: list[tuple[JsonObject, Path]] = []  # reasoning that waits for its message
        self._calls: set[str] = set()

    def add(self, item: JsonObject, path: Path) -> None:
        """Add the item at `path`. Raises Fault if chat cannot express it."""
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        used = ITEM_KEYS.get(kind)
        if used is not None:
            record_unused_keys(item, used, path, self._ctx, "chat")
        if kind == "reasoning":
            self._turn = None
            self._thoughts.append((item, path))
        elif kind in _CALLS or (kind == "message" and item.get("role") == "assistant"):
            self._join_turn(str(kind), item, path)
        elif kind == "message":
            content = item.get("content")
            if isinstance(content, list):
                content = to_chat_parts(content, (*path, "content"), self._ctx)
            self._push({"role": item.get("role"), "content": content}, path, _place_parts, item, content)
        elif kind in _OUTPUTS:
            self._add_result(item, path)
        elif kind == ADDITIONAL_TOOLS:
            self._turn = None  # its tools are among the request's
        elif kind == "item_reference":
            text = f"{format_path(path)} refers to a stored item, which the model's provider cannot look up"
            raise Fault("unsupported_parameter", text, path, code="unsupported_parameter")
        elif isinstance(kind, str) and (kind.endswith("_call") or _lists_tools(item)):
            self._ctx.receipt.record_drop(path, f"chat has no place for {kind} items")
        else:
            text = f"{format_path(path)}: chat has no place for {kind} items, which must not be left out"
            raise Fault("unsupported_parameter", text, (*path, "type"), kind, code="unsupported_parameter")

    def close(self) -> None:
        """Drop reasoning without a message after it: chat has no message for it."""
        for _, path in self._thoughts:
            self._ctx.receipt.record_drop(path, "chat has no place for reasoning without an answer or a call")
        self._thoughts = []

    def _push(self, message: JsonObject, path: Path, list_inner: Callable[..., Places], *given: Any) -> None:
        self._turn = message if message["role"] == "assistant" else None
        if self._thoughts and self._turn is None:
            self.close()
        self.messages.append(message)
        self._place(path, list_inner, *given)

    def _place(self, path: Path, list_inner: Callable[..., Places], *given: Any) -> None:
        """Place the item at `path` in the last message."""
        self.placed.append((path, len(self.messages) - 1, list_inner, given))

    def _join_turn(self, kind: str, item: JsonObject, path: Path) -> None:
        turn = self._turn
        if turn is None:
            turn = self._begin_turn(path)
        if kind == "message":
            if turn.get("tool_calls"):
                after = ("messages", len(self.messages) - 1)
                self._ctx.receipt.record_conversion(path, IN_ORDER, "loss", after)
            self._place(path, _place_assistant_parts, item)
            self._join_text(turn, item, path)
        else:
            calls = turn.setdefault("tool_calls", [])
            self._place(path, _place_call, item, ("tool_calls", len(calls)))
            calls.append(_to_chat_call(item))
            self._calls.add(str(item.get("call_id")))

    def _join_text(self, turn: JsonObject, item: JsonObject, path: Path) -> None:
        content = item.get("content")
        text, refusal = content or "", ""
        if isinstance(content, list):
            for i, part in enumerate(content):
                record_unused_keys(part, _ANSWER_KEYS, (*path, "content", i), self._ctx, "chat")
            text = "".join(str(part.get("text", "")) for part in content if part.get("type") != "refusal")
            refusal = "".join(str(part.get("refusal", "")) for part in content if part.get("type") == "refusal")
        if text or not refusal:
            turn["content"] = f"{turn['content']}{_SEPARATOR}{text}" if turn.get("content") else text
        if refusal:
            turn["refusal"] = (turn.get("refusal") or "") + refusal

    def _begin_turn(self, path: Path) -> JsonObject:
        turn: JsonObject = {"role": "assistant", "content": None}
        self._push(turn, path, _place_whole)
        if self._thoughts:
            self._join_thoughts(turn)
        return turn

    def _join_thoughts(self, turn: JsonObject) -> None:
        join_reasoning(turn, self._thoughts, self._ctx)
        for k, (thought, its_path) in enumerate(self._thoughts):
            self._place(its_path, _place_reasoning, thought)
            if k:
                reason = "it is joined to the reasoning of the item before"
                self._ctx.receipt.record_conversion(its_path, reason, after=("messages", len(self.messages) - 1))
        self._thoughts = []

    def _add_result(self, item: JsonObject, path: Path) -> None:
        call_id, output = item.get("call_id"), item.get("output")
        if item.get("type") in BUILT_IN_RESULTS:
            call_id, output = read_result(item)
        if call_id not in self._calls:
            text = f"{format_path(path)}.call_id answers no earlier function call"
            raise Fault("invalid_request", text, (*path, "call_id"), call_id, code="invalid_value")
        if isinstance(output, list):
            content: Any = to_chat_parts(output, (*path, "output"), self._ctx)
        else:
            content = output if isinstance(output, str) else orjson.dumps(output).decode()
        message = {"role": "tool", "tool_call_id": call_id, "content": content}
        self._push(message, path, _place_result, output if isinstance(output, list) else [])


def _lists_tools(item: JsonObject) -> bool:
    """Whether an item says which tools the provider's side has found. What the client itself has found is its own."""
    return item.get("type") in _LISTINGS and item.get("execution") != "client"


def _list_places(placed: list[_Placed]) -> Places:
    """Pair the paths in all items with those in the messages."""
    places: Places = [(("input",), ("messages",))]
    for path, position, list_inner, given in placed:
        places += nest_places(list_inner(*given), path, ("messages", position))
    return places


def _place_whole() -> Places:
    return [((), ())]


def _place_result(parts: list[JsonObject]) -> Places:
    """Pair the paths inside a result with those inside its message; `parts` are those of its output."""
    inner = nest_places(_place_all_parts(parts), ("output",), ("content",))
    return [*inner, (("call_id",), ("tool_call_id",)), (("output",), ("content",)), ((), ())]


def _place_parts(item: JsonObject, content: Any) -> Places:
    """Pair the paths inside the parts of a message item with those inside the parts of the message."""
    places: Places = [(("content",), ("content",))]
    parts = item["content"] if isinstance(content, list) else []
    return [*places, *nest_places(_place_all_parts(parts), ("content",), ("content",)), ((), ())]


def _place_all_parts(parts: list[JsonObject]) -> Places:
    return [place for i, part in enumerate(parts) for place in nest_places(list_chat_places(part), (i,), (i,))]


def _place_assistant_parts(item: JsonObject) -> Places:
    """Pair a text and a refusal among the parts with the message's content and refusal; the first of each counts."""
    content = item.get("content")
    if not isinstance(content, list):
        return [(("content",), ("content",))]
    keys = ["refusal" if part.get("type") == "refusal" else "content" for part in content]
    return [(("content", i), (key,)) for i, key in enumerate(keys)]


def _place_reasoning(item: JsonObject) -> Places:
    text = "content" if item.get("content") else "summary"
    return [((text,), ("reasoning_content",)), (("encrypted_content",), ("reasoning_signature",))]


def _place_call(item: JsonObject, place: Path) -> Places:
    """Pair the keys of a call item with those of the call at `place` in the message."""
    said = _CARRIED.get(str(item.get("type")), "arguments")
    inner: Places = [(("name",), ("function", "name")), ((said,), ("function", "arguments")), (("call_id",), ("id",))]
    inner += [((key,), (key,)) for key in copy_carried_keys(item)]
    return nest_places([*inner, ((), ())], (), place)


def _to_chat_call(item: JsonObject) -> JsonObject:
    if built_in := BUILT_IN_CALLS.get(str(item.get("type"))):
        function = {"name": built_in.type, "arguments": built_in.encode_action(item)}
        return {"id": item.get("call_id"), "type": "function", "function": function}
    name = flatten_name(item.get("namespace"), str(item.get("name")))
    arguments = encode_free_text(item.get("input")) if item.get("type") == "custom_tool_call" else item.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    function = {"name": name, "arguments": text}
    return {"id": item.get("call_id"), "type": "function", "function": function, **copy_carried_keys(item)}
