"""The open items of a Responses stream: each writes its events, and returns the whole item when it is closed."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.arguments import Arguments
from dragoman.adapters.responses.built_in_tools import BuiltInTool
from dragoman.adapters.responses.events import (
    ARGUMENTS,
    INPUT,
    OUTPUT_TEXT,
    TextKind,
    annotation_added,
    item_added,
    item_done,
    new_part,
    part_added,
    part_done,
    text_delta,
    text_done,
)
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.adapters.text_buffer import TextBuffer, decode_fragment

from .built_in_calls import to_built_in_call
from .tools import decode_free_text

__all__ = ["OpenBuiltInCall", "OpenCall", "OpenContent"]

_DELTA = ("delta",)


class OpenContent:
    """An open message or reasoning item. Its last part is open."""

    __slots__ = (
        "_annotations",
        "_buffer",
        "_delta",
        "_id",
        "_item",
        "_kind",
        "_lists",
        "_logprobs",
        "index",
        "signature",
        "type",
    )

    def __init__(self, item: JsonObject, index: int, out: list[Output]) -> None:
        self._item = item
        self._id: str = item["id"]
        self.index = index
        self._lists: dict[str, list[JsonObject]] = {}
        self._kind: TextKind | None = None
        self._delta: JsonObject = {}  # the delta event of the open part, without its text
        self._buffer = TextBuffer()
        self._logprobs: list[Any] = []
        self._annotations: list[JsonObject] = []
        self.type: str = item["type"]
        self.signature: str | None = None
        out.append(Chunk(item_added(index, {**item, "status": "in_progress"})))

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing: texts have no end of their own."""
        return True

    @property
    def kind(self) -> TextKind | None:
        """The kind of the open part; None if none is open."""
        return self._kind

    @property
    def has_text(self) -> bool:
        """True while a part of output text is open."""
        return self._kind is OUTPUT_TEXT

    def write(self, kind: TextKind, text: str, logprobs: list[Any], out: list[Output]) -> None:
        """Write a piece of text, and open a part for it unless one of its kind is open. Appends the events to `out`."""
        self.open_part(kind, out)
        self._buffer.add(text)
        delta = {**self._delta, "delta": text}
        if logprobs:
            self._logprobs += logprobs
            delta["logprobs"] = logprobs
        out.append(Chunk(delta))

    def open_part(self, kind: TextKind, out: list[Output]) -> None:
        """Open a part unless one of its kind is open. Appends the events to `out`."""
        if self._kind is not kind:
            self._close_part(out)
            self._kind = kind
            out.append(Chunk(part_added(kind, self._id, self.index, self._position, new_part(kind))))
            self._delta = text_delta(kind, self._id, self.index, self._position, "")

    def write_run(self, run: DeltaRun) -> list[Output]:
        """Write a run of texts, without log probabilities, to the open part. Empty texts are ignored."""
        texts = run.texts if all(run.texts) else [text for text in run.texts if text]
        self._buffer.add_fragments(texts)
        return [DeltaRun(self._delta, _DELTA, texts)] if texts else []

    def annotate(self, annotation: JsonObject, out: list[Output]) -> None:
        """Add an annotation to the open part of output text. Appends the event to `out`."""
        place = len(self._annotations)
        self._annotations.append(annotation)
        out.append(Chunk(annotation_added(self._id, self.index, self._position, place, annotation)))

    def close(self, status: str, out: list[Output]) -> JsonObject:
        """Append the events that close the open part and the item. Returns the whole item."""
        self._close_part(out)
        item = {**self._item, "status": status, **self._lists}
        if self.signature is not None:
            item["encrypted_content"] = self.signature
        out.append(Chunk(item_done(self.index, item)))
        return item

    @property
    def _position(self) -> int:
        """The position of the open part in its list."""
        return len(self._lists.get(self._kind.place, ())) if self._kind else 0

    def _close_part(self, out: list[Output]) -> None:
        kind = self._kind
        if kind is None:
            return
        text, at = self._buffer.text(), self._position
        part = new_part(kind, text, self._annotations, self._logprobs)
        out.append(Chunk(text_done(kind, self._id, self.index, at, text, self._logprobs)))
        out.append(Chunk(part_done(kind, self._id, self.index, at, part)))
        self._lists.setdefault(kind.place, []).append(part)
        self._kind, self._buffer, self._logprobs, self._annotations = None, TextBuffer(), [], []


class OpenCall:
    """An open tool call; `kind` is what it carries, arguments or free text.

    `chat_name` is its name in chat, as far as it was received. `holds_free_text`: the arguments of a function hold the
    free text, which is written when they are complete.
    """

    __slots__ = ("_buffer", "_delta", "_holds_free_text", "_id", "_item", "_kind", "chat_name", "index")

    def __init__(
        self,
        item: JsonObject,
        kind: TextKind,
        index: int,
        out: list[Output],
        chat_name: str = "",
        *,
        holds_free_text: bool = False,
    ) -> None:
        self._item = item
        self._id: str = item["id"]
        self._kind = kind
        self._holds_free_text = holds_free_text
        self.chat_name = chat_name
        self.index = index
        self._buffer = Arguments()
        self._delta = text_delta(kind, self._id, index, 0, "")
        out.append(Chunk(item_added(index, {**item, kind.key: "", "status": "in_progress"})))

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are whole; free text has no end of its own."""
        return (self._kind is INPUT and not self._holds_free_text) or self._buffer.is_closed

    def set_keys(self, keys: JsonObject) -> None:
        """Set keys of the item, such as its name, that came after the first piece."""
        self._item.update(keys)

    def write(self, text: str, out: list[Output]) -> None:
        """Write a piece of the arguments or of the free text. Appends the event to `out`."""
        self._buffer.add(text)
        if not self._holds_free_text:
            self._write_delta(text, out)

    def write_run(self, run: DeltaRun) -> list[Output]:
        """Write a run of pieces of the arguments. Empty ones are left out."""
        texts = [text for text in run.texts if text]
        self._buffer.add(decode_fragment(b"".join(texts)))
        return [DeltaRun(self._delta, _DELTA, texts)] if texts and not self._holds_free_text else []

    def close(self, status: str, out: list[Output]) -> JsonObject:
        """Append the events that close the call. Returns the whole item."""
        text = self._buffer.text()
        if self._holds_free_text:
            text = decode_free_text(text)
            self._write_delta(text, out)
        item = {**self._item, self._kind.key: text, "status": status}
        out.append(Chunk(text_done(self._kind, self._id, self.index, 0, text)))
        out.append(Chunk(item_done(self.index, item)))
        return item

    def _write_delta(self, text: str, out: list[Output]) -> None:
        out.append(Chunk({**self._delta, "delta": text}))


class OpenBuiltInCall:
    """An open call of a tool like `shell`: its arguments become the item when they are whole, so it is written then."""

    __slots__ = ("_buffer", "_call_id", "_ctx", "_keys", "_tool", "chat_name", "index")

    def __init__(self, tool: BuiltInTool, call_id: str, index: int, ctx: Context) -> None:
        self._tool = tool
        self._call_id = call_id
        self._ctx = ctx
        self._keys: JsonObject = {}
        self._buffer = Arguments()
        self.chat_name = tool.type
        self.index = index

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are whole."""
        return self._buffer.is_closed

    def set_keys(self, keys: JsonObject) -> None:
        """Set keys of the item that came after the first piece; its name is known."""
        self._keys.update({key: value for key, value in keys.items() if key != "name"})

    def write(self, text: str, out: list[Output]) -> None:
        """Add a piece of the arguments."""
        self._buffer.add(text)

    def close(self, status: str, out: list[Output]) -> JsonObject:
        """Append the events of the item. Returns the whole item, a function call if its arguments do not fit."""
        text = self._buffer.text()
        item = to_built_in_call(self._tool, self._call_id, text, ("choices", 0, "delta", "tool_calls"), self._ctx)
        if item is None:
            item = {"type": "function_call", "id": self._ctx.new_id("fc"), "call_id": self._call_id}
            call = OpenCall({**item, "name": self._tool.type, **self._keys}, ARGUMENTS, self.index, out)
            call.write(text, out)
            return call.close(status, out)
        item = {**item, **self._keys}
        out.append(Chunk(item_added(self.index, {**item, "status": "in_progress"})))
        out.append(Chunk(item_done(self.index, {**item, "status": status})))
        return {**item, "status": status}
