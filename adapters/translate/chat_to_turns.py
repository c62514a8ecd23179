"""Converts chat messages to the system prompt and the turns of a Messages request.

The instructions at the head are the system prompt. Those after the first turn stay where they are if the provider is
configured for a version of the API that has them there; else they are at the end of the system prompt. The results of
tools, and what the user says after them, are one turn: roles alternate. In a turn of the assistant the reasoning comes
first, then the text, then the calls.

Sources: anthropic 2.12.0, MessageCreateParams, MessageParam; Anthropic, Tool use: results come first in a turn.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import sha256
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import cite_blocks
from dragoman.adapters.chat.messages import order_tool_results
from dragoman.adapters.chat.reasoning import is_sealed, list_blocks, read_blocks, set_reasoning
from dragoman.adapters.chat.spoken_answers import write_transcripts
from dragoman.adapters.messages.inputs import read_input
from dragoman.adapters.paths import Path, Places, nest_places

from .chat_to_messages import FREE_TEXT
from .items import add_call_ids, drop_position
from .message_citations import list_placed_citations
from .parts_to_blocks import to_block
from .replies import NO_TEXT
from .unused_keys import record_unused_keys

__all__ = ["chat_to_turns", "to_reasoning_blocks"]

_PROTOCOL = "Messages"
_INSTRUCTING = ("system", "developer")
_SAID = ("role", "content")
_REASONING = ("reasoning_content", "reasoning_signature", "reasoning_details")
_THINKING = "thinking_blocks"
_USED = {
    "tool": (*_SAID, "tool_call_id", "is_error"),
    "assistant": (*_SAID, *_REASONING, "refusal", "tool_calls", "citations", "annotations"),
}
_ANSWER = "assistant"
_FOREIGN = re.compile("[^a-zA-Z0-9_-]")  # characters that an id of a call must not have
_DIGITS = 8

_WITH_SYSTEM_TURNS = "2026-10-21"
"""The version of the API that has instructions between the turns. Source: anthropic 2.12.0, SystemMessageParam."""
_MOVED = "the API version has instructions only in the system prompt"
_BLANK = "a text without a character, or of white space"
_SAID_LAST = "Messages continues a last message of the assistant"


def chat_to_turns(messages: list[JsonObject], ctx: Context) -> tuple[Any, list[JsonObject]]:
    """Convert chat messages to a system prompt, None if there is none, and turns. Raises Fault.

    If there are only instructions, the last of them is what the user says: the API needs a turn.
    """
    messages = order_tool_results(write_transcripts(list(add_call_ids(messages, ctx)), ctx), ctx)
    instructing = [i for i, one in enumerate(messages) if one["role"] in _INSTRUCTING]
    if len(instructing) == len(messages):
        last = instructing.pop()
        reason = "the only message is what the user says: Messages needs a turn"
        ctx.receipt.record_conversion(("messages", last), reason, "loss", after=("messages", 0))
        messages[last] = {**messages[last], "role": "user"}
    elif ctx.target.api_version == _WITH_SYSTEM_TURNS:
        instructing = [i for place, i in enumerate(instructing) if place == i]  # those at the head
    conversation = _Conversation(ctx)
    system = _join_system([(i, messages[i]) for i in instructing], conversation, ctx)
    said = {*range(len(messages))}.difference(instructing)
    for i in sorted(said):
        conversation.add(messages[i], ("messages", i))
    if conversation.turns and conversation.turns[-1]["role"] == _ANSWER:
        after: Path = ("messages", len(conversation.turns) - 1)
        ctx.receipt.record_conversion(("messages", len(messages) - 1), _SAID_LAST, "loss", after=after)
    ctx.receipt.record_conversion(("messages",), "messages become turns")
    ctx.receipt.map_paths([*conversation.places, (("messages",), ("messages",))])
    return system, [_shorten(turn) for turn in conversation.turns]


def to_reasoning_blocks(message: JsonObject) -> list[JsonObject]:
    """The blocks of Messages for the reasoning of a chat message. Reasoning that nobody signed has an empty
    signature."""
    return [
        {"type": "redacted_thinking", "data": one["data"]}
        if is_sealed(one)
        else {"type": "thinking", "thinking": one["text"], "signature": one.get("signature") or ""}
        for one in list_blocks(message)
    ]


def _read_thinking(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """The message with the reasoning of LiteLLM's `thinking_blocks`, unless other keys have it with its signatures."""
    found, known = read_blocks(message[_THINKING]), list_blocks(message)
    if not found:
        return message
    rest = {key: value for key, value in message.items() if key != _THINKING}
    if any(is_sealed(block) or block.get("signature") for block in known):
        ctx.receipt.record_drop((*path, _THINKING), "the details of the reasoning say the same", "form")
        return rest
    if message.get("reasoning_content"):
        ctx.receipt.record_drop((*path, "reasoning_content"), f"{_THINKING} say the same", "form")
    ctx.receipt.record_conversion((*path, _THINKING), "they are blocks of Messages")
    bare = {key: value for key, value in rest.items() if key not in _REASONING}
    set_reasoning(bare, found)
    return bare


def _join_system(messages: list[tuple[int, JsonObject]], conversation: _Conversation, ctx: Context) -> Any:
    """The system prompt of these messages, with their positions: a text if it is one, else blocks."""
    blocks: list[JsonObject] = []
    for place, (i, message) in enumerate(messages):
        path: Path = ("messages", i)
        record_unused_keys(message, _SAID, path, ctx, _PROTOCOL)
        made, places = conversation.convert_content(message.get("content"), (*path, "content"))
        conversation.places += nest_places(_shift(places, len(blocks)), path, ("system",))
        conversation.places.append((path, ("system", len(blocks))))
        reason = "the first instructions are the system prompt" if place == i else _MOVED
        ctx.receipt.record_conversion(path, reason, after=("system",))
        blocks += made
    if not blocks:
        return None
    conversation.places.append((("messages", messages[0][0]), ("system",)))
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks


def _shift(places: Places, count: int) -> Places:
    """The pairs with the positions of blocks that come after `count` others."""
    return [(before, (int(after[0]) + count, *after[1:])) for before, after in places]


def _shorten(turn: JsonObject) -> JsonObject:
    """The turn, whose content is a text if it is nothing else."""
    content = turn["content"]
    is_text = len(content) == 1 and content[0].keys() == {"type", "text"}
    return {**turn, "content": content[0]["text"]} if is_text else turn


class _Conversation:
    """Builds turns, whose contents are lists of blocks; `places` pairs paths in the messages with paths there."""

    def __init__(self, ctx: Context) -> None:
        self.turns: list[JsonObject] = []
        self.places: Places = []
        self._ctx = ctx
        self._counts: dict[str, int] = {}  # the ids of calls that are taken, each with the highest number behind it
        self._waiting: dict[str, deque[str]] = {}  # id of a call -> the ids that its calls without result got

    def add(self, message: JsonObject, path: Path) -> None:
        """Add a message. Raises Fault if Messages cannot express it."""
        role = message["role"]
        if role == _ANSWER and message.get(_THINKING):
            message = _read_thinking(message, path, self._ctx)
        record_unused_keys(message, _USED.get(role, _SAID), path, self._ctx, _PROTOCOL)
        if role == "tool":
            result, places = self._to_result(message, path)
            self._join("user", [result], places, path)
            return
        if role == _ANSWER:
            blocks, places = self._convert_answer(message, path)
        else:
            blocks, places = self.convert_content(message.get("content"), (*path, "content"))
        if not blocks:
            self._ctx.receipt.record_drop(path, "the message says nothing", "form")
        else:
            self._join("system" if role in _INSTRUCTING else role, blocks, places, path)

    def _join(self, role: str, blocks: list[JsonObject], places: Places, path: Path) -> None:
        """Add blocks to the last turn, if it has this role, else to a new one."""
        if self.turns and self.turns[-1]["role"] == role:
            if blocks[0]["type"] != "tool_result" and self.turns[-1]["content"][-1]["type"] != "tool_result":
                reason = "messages of the same role that follow one another are one turn"
                self._ctx.receipt.record_conversion(path, reason, after=("messages", len(self.turns) - 1))
        else:
            self.turns.append({"role": role, "content": []})
        turn: Path = ("messages", len(self.turns) - 1)
        content = self.turns[-1]["content"]
        self.places += nest_places(_shift(places, len(content)), path, (*turn, "content"))
        self.places += [(path, (*turn, "content", k)) for k in range(len(content), len(content) + len(blocks))]
        self.places += [((*path, "content"), (*turn, "content")), (path, turn)]
        content += blocks

    def convert_content(self, content: Any, path: Path) -> tuple[list[JsonObject], Places]:
        """Convert the content of a message, without texts that are empty or white space: Anthropic refuses these. The
        paths in the pairs begin at the message, and at the list of blocks."""
        if not isinstance(content, list):
            places: Places = [(("content",), (0, "text")), (("content",), (0,))]
            if content and not content.strip():
                self._ctx.receipt.record_drop(path, _BLANK, "form")
            return ([{"type": "text", "text": content}], places) if content and content.strip() else ([], [])
        blocks: list[JsonObject] = []
        places = []
        for k, part in enumerate(content):
            block, inner = to_block(part, (*path, k), self._ctx)
            if isinstance(text := block.get("text"), str) and not text.strip():
                self._ctx.receipt.record_drop((*path, k), _BLANK, "form")
                continue
            if cited := part.get("citations"):
                block["citations"] = cited
            places += nest_places([*inner, ((), ())], ("content", k), (len(blocks),))
            blocks.append(block)
        return blocks, places

    def _convert_answer(self, message: JsonObject, path: Path) -> tuple[list[JsonObject], Places]:
        blocks = to_reasoning_blocks(message)
        places: Places = [(("reasoning_details", k), (k,)) for k in range(len(blocks))]
        if not message.get("reasoning_details"):
            names = (("reasoning_signature", "signature"), ("reasoning_content", "thinking"))
            places = [((name,), (0, key)) for name, key in names] + [(("reasoning_content",), (0,))] if blocks else []
        said, inner = self._convert_said(message, path)
        places += _shift(inner, len(blocks))
        blocks += said
        if message.get("refusal"):
            self._ctx.receipt.record_conversion((*path, "refusal"), "a refusal is a text in Messages")
            places.append((("refusal",), (len(blocks),)))
            blocks.append({"type": "text", "text": message["refusal"]})
        for k, call in enumerate(message.get("tool_calls") or ()):
            where: Path = ("tool_calls", k)
            places += nest_places(_CALL_PLACES, where, (len(blocks),))
            blocks.append(self._to_tool_use(call, (*path, *where)))
        return blocks, places

    def _convert_said(self, message: JsonObject, path: Path) -> tuple[list[JsonObject], Places]:
        """The text of an answer, with its citations."""
        content = message.get("content")
        cited = list_placed_citations(message, path, self._ctx)
        if not cited or not isinstance(content, str):
            if cited:
                self._ctx.receipt.record_drop((*path, "citations"), NO_TEXT)
            return self.convert_content(content, (*path, "content"))
        found = cite_blocks(content, cited)
        blocks = [one for one in found if one["text"]]
        if len(blocks) < len(found):
            self._ctx.receipt.record_drop((*path, "citations"), NO_TEXT)
        return blocks, [(("content",), (k,)) for k in range(len(blocks))]

    def _to_result(self, message: JsonObject, path: Path) -> tuple[JsonObject, Places]:
        content = message.get("content")
        places: Places = [(("tool_call_id",), (0, "tool_use_id")), (("content",), (0, "content"))]
        if isinstance(content, list):
            content, inner = self.convert_content(content, (*path, "content"))
            places = [(before, (0, "content", *after)) for before, after in inner] + places
        call_id = self._find_call(message["tool_call_id"], (*path, "tool_call_id"))
        made: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": content or ""}
        return {**made, "is_error": True} if message.get("is_error") else made, places

    def _to_tool_use(self, call: JsonObject, path: Path) -> JsonObject:
        kind = call["type"]
        said = call[kind]
        mark = call.get("cache_control")
        marked = {"cache_control": mark} if isinstance(mark, dict) else {}
        record_unused_keys(call, ("id", "type", "index", kind, *marked), path, self._ctx, _PROTOCOL)
        record_unused_keys(said, ("name", "arguments", "input"), (*path, kind), self._ctx, _PROTOCOL)
        drop_position(call, path, self._ctx)
        if kind == "custom":
            given: JsonObject = {"input": said["input"]}
            self._ctx.receipt.record_conversion((*path, kind), FREE_TEXT)
        else:
            given = self._read_arguments(said["arguments"], (*path, kind, "arguments"))
        call_id = self._name_call(call["id"], (*path, "id"))
        return {"type": "tool_use", "id": call_id, "name": said["name"], "input": given, **marked}

    def _read_arguments(self, arguments: str, path: Path) -> JsonObject:
        """The input of a call; other text becomes a member, because a model may have written it."""
        found = read_input(arguments, path, self._ctx.receipt)
        if found is not None:
            return found
        self._ctx.receipt.record_conversion(path, "Messages has only JSON objects: the text becomes a member", "loss")
        return {"arguments": arguments}

    def _name_call(self, call_id: str, path: Path) -> str:
        """The id of a call, which is unique in the request: some servers count the calls of each answer from 0."""
        wanted = made = self._clean_id(call_id, path)
        while made in self._counts:
            self._counts[wanted] += 1
            made = f"{wanted}_{self._counts[wanted]}"
        if made != wanted:
            self._ctx.receipt.record_conversion(path, "the API takes each id of a call once")
        self._counts[made] = 1
        self._waiting.setdefault(call_id, deque()).append(made)
        return made

    def _find_call(self, call_id: str, path: Path) -> str:
        """The id of the call that a result answers: of calls with one id, the first that has no result."""
        made = self._clean_id(call_id, path)
        waiting = self._waiting.get(call_id)
        return waiting.popleft() if waiting else made

    def _clean_id(self, call_id: str, path: Path) -> str:
        """The id of a call in characters that the API accepts; the same in a call, its result and later requests."""
        if not _FOREIGN.search(call_id):
            return call_id
        self._ctx.receipt.record_conversion(path, "the API takes only letters, digits, _ and -")
        return f"{_FOREIGN.sub('_', call_id)}_{sha256(call_id.encode()).hexdigest()[:_DIGITS]}"


_CALL_PLACES: Places = [
    (("function", "name"), ("name",)),
    (("function", "arguments"), ("input",)),
    (("custom", "name"), ("name",)),
    (("custom", "input"), ("input",)),
    (("id",), ("id",)),
    ((), ()),
]
