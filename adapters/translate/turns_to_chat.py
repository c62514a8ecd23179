"""Converts the turns of a Messages request to chat messages.

A user's turn has the results of tools, and what the user says. In chat each result is a message of its own; they come
first, and what the user says follows in one message. Turns of the assistant that follow one another are one message,
because the API joins them too. In such a message chat has the reasoning, then the text, then the calls.

Source: anthropic 2.12.0, MessageCreateParams.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import (
    PlainMessages,
    are_plain_turns,
    list_shifted_places,
    order_tool_results,
    put_instructions_first,
)
from dragoman.adapters.chat.reasoning import set_reasoning
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path, nest_places

from .answer_blocks import IN_ORDER, NO_PLACE, RANKS, list_call_keys, to_reasoning
from .content_blocks import PlacedBlock, keep_marks, list_part_places, to_content, to_parts
from .tools import shorten_name
from .unused_keys import record_unused_keys

__all__ = ["turns_to_chat"]

_SYSTEM: Path = ("system",)
_TURN_KEYS = frozenset({"role", "content"})
_INSTRUCTIONS = "the system prompt becomes the first message"
_TURNS = "turns become messages"
_REASONING = ("thinking", "redacted_thinking")
_RESULT_KEYS = ("type", "tool_use_id", "content", "is_error", "cache_control")


def turns_to_chat(system: Any, turns: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert the system prompt and the turns of a Messages request. Raises Fault, with the client's path."""
    if _are_plain(system, turns):
        return _convert_plain(system, turns, ctx)
    conversation = _Conversation(ctx)
    if system:
        conversation.add_system(list_blocks(system, _SYSTEM), _SYSTEM)
        ctx.receipt.record_conversion(_SYSTEM, _INSTRUCTIONS, after=("messages", 0))
    for i, turn in enumerate(turns):
        conversation.add_turn(turn, ("messages", i))
    conversation.close()
    ctx.receipt.record_conversion(("messages",), _TURNS)
    ctx.receipt.map_paths_below("messages", partial(_list_places, conversation.placed))
    return order_tool_results(conversation.messages, ctx)


def _are_plain(system: Any, turns: list[JsonObject]) -> bool:
    """Whether all turns have a text and nothing else, so that they are messages of chat as they are."""
    return not isinstance(system, list) and are_plain_turns(turns) and "" not in [turn["content"] for turn in turns]


def _convert_plain(system: str | None, turns: list[JsonObject], ctx: Context) -> list[JsonObject]:
    if system:
        ctx.receipt.record_conversion(_SYSTEM, _INSTRUCTIONS, after=("messages", 0))
    ctx.receipt.record_conversion(("messages",), _TURNS)
    messages = PlainMessages(turns)
    if not system:
        return messages
    ctx.receipt.map_paths_below("messages", partial(list_shifted_places, _SYSTEM, len(turns)))
    return put_instructions_first(system, messages)


def list_blocks(content: Any, path: Path) -> list[PlacedBlock]:
    """The blocks of a content at `path`; a string is one block of text."""
    if isinstance(content, str):
        return [PlacedBlock({"type": "text", "text": content}, path)]
    return [PlacedBlock(block, (*path, k)) for k, block in enumerate(content or ())]


_Placed: TypeAlias = tuple[Callable[..., Places], tuple[Any, ...]]
"""A function that pairs paths in the request with paths in the messages, and its arguments."""


def _list_places(placed: list[_Placed]) -> Places:
    return [place for list_some, given in placed for place in list_some(*given)]


def _pair_said(before: Path, said: Path, after: Path) -> Places:
    """Pair what is said in a turn, and the turn, with the content of a message, and the message."""
    return [(said, (*after, "content")), (before, after)]


class _Conversation:
    """Builds chat messages; `placed` says where everything in the request has gone."""

    def __init__(self, ctx: Context) -> None:
        self.messages: list[JsonObject] = []
        self.placed: list[_Placed] = []
        self._ctx = ctx
        self._answer: list[PlacedBlock] = []  # of the assistant's turns that are one message
        self._answer_path: Path = ()

    def add_turn(self, turn: JsonObject, path: Path) -> None:
        """Add a turn. Raises Fault if chat cannot express it."""
        record_unused_keys(turn, _TURN_KEYS, path, self._ctx, "chat")
        blocks = list_blocks(turn.get("content"), (*path, "content"))
        if turn["role"] == "assistant":
            if self._answer_path:
                reason = "turns of the assistant that follow one another are one message"
                self._ctx.receipt.record_conversion(path, reason, after=("messages", len(self.messages)))
            self._answer += blocks
            self._answer_path = self._answer_path or path
            return
        self.close()
        if turn["role"] == "system":
            self.add_system(blocks, path)
        else:
            self._add_user(blocks, path)

    def close(self) -> None:
        """Add the assistant's message, if there is one."""
        if self._answer_path:
            self._add_answer(self._answer, self._answer_path)
        self._answer, self._answer_path = [], ()

    def add_system(self, blocks: list[PlacedBlock], path: Path) -> None:
        """Add instructions."""
        texts = [one for one in blocks if one.block["type"] == "text"]
        for block, where in blocks:
            if block["type"] != "text":
                self._ctx.receipt.record_drop(where, f"{NO_PLACE} {block['type']}")
        self._add_spoken({"role": "system"}, texts, path)

    def _add_spoken(self, message: JsonObject, blocks: list[PlacedBlock], path: Path) -> None:
        """Add a message whose content are these blocks, unless there is none."""
        parts = to_parts(self._drop_empty_texts(blocks), self._ctx)
        if not parts:
            self._ctx.receipt.record_drop(path, "the message says nothing", "form")
            return
        message["content"] = to_content(parts)
        where: Path = ("messages", len(self.messages))
        self._place(list_part_places, parts, message["content"], where)
        self._place(_pair_said, path, path if path == _SYSTEM else (*path, "content"), where)
        self.messages.append(message)

    def _place(self, list_places: Callable[..., Places], *given: Any) -> None:
        self.placed.append((list_places, given))

    def _drop_empty_texts(self, blocks: list[PlacedBlock]) -> list[PlacedBlock]:
        kept: list[PlacedBlock] = []
        for one in blocks:
            if one.block["type"] != "text" or one.block["text"]:
                kept.append(one)
            else:
                self._ctx.receipt.record_drop(one.path, "a text without a character", "form")
        return kept

    def _add_user(self, blocks: list[PlacedBlock], path: Path) -> None:
        results = [one for one in blocks if one.block["type"] == "tool_result"]
        spoken = [one for one in blocks if one.block["type"] != "tool_result"]
        if any(one.block["type"] != "tool_result" for one in blocks[: len(results)]):
            reason = "in chat the results of tools come before what the user says"
            self._ctx.receipt.record_conversion(path, reason, "loss", after=("messages", len(self.messages)))
        for result in results:
            self._add_result(result)
        if spoken or not results:
            self._add_spoken({"role": "user"}, spoken, path)

    def _add_result(self, placed: PlacedBlock) -> None:
        block, path = placed
        record_unused_keys(block, _RESULT_KEYS, path, self._ctx, "chat")
        given = block.get("content")
        parts = to_parts(list_blocks(given, (*path, "content")), self._ctx)
        mark = keep_marks(block, path, self._ctx)
        if mark:
            self._ctx.receipt.record_conversion((*path, "cache_control"), "chat has the mark in a part of the result")
            if not parts:
                parts = to_parts([PlacedBlock({"type": "text", "text": ""}, path)], self._ctx)
            parts[-1] = parts[-1]._replace(part={**parts[-1].part, **mark})
        content: Any = to_content(parts) if parts else ""
        where: Path = ("messages", len(self.messages))
        self._place(list_part_places, parts, content, where)
        self._place(nest_places, _RESULT_PLACES, path, where)
        failed = {"is_error": True} if block.get("is_error") else {}
        self.messages.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content, **failed})

    def _add_answer(self, blocks: list[PlacedBlock], path: Path) -> None:
        blocks = [self._replace_summary(one) for one in blocks]
        blocks = self._drop_empty_texts([one for one in blocks if self._is_known(one)])
        self._record_order(blocks)
        message: JsonObject = {"role": "assistant", "content": None}
        where: Path = ("messages", len(self.messages))
        texts = to_parts([one for one in blocks if one.block["type"] == "text"], self._ctx)
        if texts:
            message["content"] = to_content(texts)
            self._place(list_part_places, texts, message["content"], where)
        thoughts = [one for one in blocks if one.block["type"] in _REASONING]
        if thoughts:
            self._set_reasoning(message, thoughts, where)
        for placed in blocks:
            if placed.block["type"] == "tool_use":
                calls = message.setdefault("tool_calls", [])
                self._place(nest_places, _CALL_PLACES, placed.path, (*where, "tool_calls", len(calls)))
                calls.append(self._to_call(placed))
        if len(message) == 2 and message["content"] is None:
            self._ctx.receipt.record_drop(path, "the message says nothing", "form")
            return
        if message["content"] is None and "tool_calls" not in message:
            message["content"] = ""  # only reasoning: chat requires a content
        self._place(_pair_said, path, (*path, "content"), where)
        self.messages.append(message)

    def _replace_summary(self, placed: PlacedBlock) -> PlacedBlock:
        """Replace the summary of earlier turns by its text: clients leave out the turns that it sums up."""
        block, path = placed
        if block["type"] != "compaction" or not block.get("content"):
            return placed
        record_unused_keys(block, ("type", "content", "cache_control"), path, self._ctx, "chat")
        self._ctx.receipt.record_conversion(path, "the summary of earlier turns becomes text")
        mark = {"cache_control": block["cache_control"]} if block.get("cache_control") else {}
        return PlacedBlock({"type": "text", "text": block["content"], **mark}, path)

    def _is_known(self, placed: PlacedBlock) -> bool:
        block, path = placed
        if block["type"] not in RANKS:
            self._ctx.receipt.record_drop(path, f"{NO_PLACE} {block['type']}")
        return block["type"] in RANKS

    def _record_order(self, blocks: list[PlacedBlock]) -> None:
        rank = 0
        for block, path in blocks:
            if RANKS[block["type"]] < rank:
                self._ctx.receipt.record_conversion(path, IN_ORDER, "loss", after=("messages", len(self.messages)))
            rank = max(rank, RANKS[block["type"]])

    def _set_reasoning(self, message: JsonObject, placed: list[PlacedBlock], where: Path) -> None:
        set_reasoning(message, [made for block, path in placed for made in to_reasoning(block, path, self._ctx)])
        has_details = "reasoning_details" in message
        if len(placed) > 1 and not has_details:
            reason = "the texts of reasoning are joined in chat"
            self._ctx.receipt.record_conversion(placed[1].path, reason, after=(*where, "reasoning_content"))
        for k, (_, path) in enumerate(placed):
            if has_details:
                self._place(nest_places, [((), ("reasoning_details", k))], path, where)
            self._place(nest_places, _THINKING_PLACES, path, where)

    def _to_call(self, placed: PlacedBlock) -> JsonObject:
        block, path = placed
        record_unused_keys(block, (*list_call_keys(block), "cache_control"), path, self._ctx, "chat")
        if not isinstance(block["input"], dict):
            text = f"{format_path(path)}.input must be an object"
            raise Fault("invalid_request", text, (*path, "input"), block["input"], code="invalid_type")
        function = {"name": shorten_name(block["name"]), "arguments": orjson.dumps(block["input"]).decode()}
        kept = copy_carried_keys(block) | keep_marks(block, path, self._ctx)
        return {"id": block["id"], "type": "function", "function": function, **kept}


_RESULT_PLACES: Places = [(("tool_use_id",), ("tool_call_id",)), (("content",), ("content",)), ((), ())]
_THINKING_PLACES: Places = [
    (("thinking",), ("reasoning_content",)),
    (("signature",), ("reasoning_signature",)),
    ((), ("reasoning_details",)),
]
_CALL_PLACES: Places = [
    (("name",), ("function", "name")),
    (("input",), ("function", "arguments")),
    (("id",), ("id",)),
    ((), ()),
]
