"""Brings a chat request that a translation made into the form that providers of chat accept.

Translations make requests that hold a little more than chat does, so that nothing is lost if a second translation
follows:

    a tool result with images or files      its text; the rest follows in a user message, after all results of the turn
    `is_error` of a tool result             dropped, a loss
    a file with an address, `file_url`      refused
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.messages import PlainMessages, extract_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path

__all__ = ["to_plain_chat"]

_SEE_NEXT_MESSAGE = "The result is shown in the next message."


def to_plain_chat(request: JsonObject, ctx: Context) -> JsonObject:
    """The request in the form that providers accept; the same object if it has that form. Raises Fault."""
    messages: list[JsonObject] = request["messages"]
    if type(messages) is PlainMessages:
        return request
    for message in messages:
        if "is_error" in message or ("content" in message and type(message["content"]) is list):
            break
    else:
        return request  # most of them: no message has parts
    _refuse_addresses(messages, ctx)
    if not any(_is_rich(message) for message in messages):
        return request
    conversation = _Conversation(ctx)
    for i, message in enumerate(messages):
        conversation.add(message, i)
    conversation.close_turn()
    ctx.receipt.map_paths(conversation.places)
    return {**request, "messages": conversation.messages}


def _refuse_addresses(messages: list[JsonObject], ctx: Context) -> None:
    for i, message in enumerate(messages):
        for k, part in _list_shown(message):
            if part["type"] == "file" and part["file"].get("file_url") is not None:
                path: Path = ("messages", i, "content", k)
                text = f"{format_path(ctx.receipt.unmap(path))}: chat has no place for a file with an address"
                raise Fault("unsupported_parameter", text, path, part["type"], code="unsupported_parameter")


def _is_rich(message: JsonObject) -> bool:
    return message["role"] == "tool" and ("is_error" in message or next(_list_shown(message), None) is not None)


def _list_shown(message: JsonObject) -> Iterator[tuple[int, Any]]:
    """The parts of a message that are no text, with their positions."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return ((k, part) for k, part in enumerate(parts) if part.get("type") in ("image_url", "file"))


class _Conversation:
    """Builds the new messages; `places` pairs each path in the old ones with the new path."""

    def __init__(self, ctx: Context) -> None:
        self.messages: list[JsonObject] = []
        self.places: Places = []
        self._ctx = ctx
        self._shown: list[tuple[int, list[tuple[int, JsonObject]]]] = []  # position of a result -> its parts

    def add(self, message: JsonObject, position: int) -> None:
        """Add the message at this position."""
        if message["role"] != "tool":
            self.close_turn()
        self.places.append((("messages", position), ("messages", len(self.messages))))
        self.messages.append(self._simplify(message, position) if _is_rich(message) else message)

    def close_turn(self) -> None:
        """Add what the results of a turn show, each in a user message."""
        for position, shown in self._shown:
            after = ("messages", len(self.messages), "content")
            old = ("messages", position, "content")
            self.places += [((*old, k), (*after, new)) for new, (k, _) in enumerate(shown)]
            self.places += [(old, after), (old[:2], after[:2])]
            self.messages.append({"role": "user", "content": [part for _, part in shown]})
        self._shown = []

    def _simplify(self, message: JsonObject, position: int) -> JsonObject:
        path: Path = ("messages", position)
        made = {key: value for key, value in message.items() if key != "is_error"}
        if "is_error" in message:
            self._ctx.receipt.record_drop((*path, "is_error"), "chat has no place for it")
        if shown := list(_list_shown(message)):
            self._shown.append((position, shown))
            made["content"] = extract_text(message["content"]) or _SEE_NEXT_MESSAGE
            self._ctx.receipt.record_conversion(
                (*path, "content"), "a tool result is only text in chat: its images and files follow in a user message"
            )
        return made
