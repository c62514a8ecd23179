"""Puts the blocks of a stream in order: one after the other, numbered from 0, each begun once and ended once.

Clients append a block when it begins and find it again by its number, so the hub's numbers are those of the order in
which blocks begin. The provider's own numbers only say what belongs together:

    comes                          while                                 becomes
    -----------------------------  ------------------------------------  ---------------------------------------------
    the beginning of a block       no block is open                      the next block
                                   text or thinking is open              its end, then the next block
                                   a call is open                        the next block after the call has ended: a
                                                                         client needs its input whole
                                   the same block is open, or waits      nothing
    a piece or the end of a block  the block is open                     the piece or the end
                                   the block waits                       the same, after its beginning
    a piece of text or thinking    there is no such block, or it ended   a block of its own
    another piece                  there is no such block, or it ended   nothing, a loss
    the end of a block             no such block is open                 nothing

If the input of a call comes with its beginning, it becomes a piece: clients read inputs from pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.streams import Chunk

from .blocks import BlockNormalizer
from .events import (
    BLOCK_START,
    BLOCK_STOP,
    CITATIONS,
    DELTA,
    INPUT,
    SIGNATURE,
    TEXT,
    TEXTS,
    THINKING,
    TOOL_USES,
    block_delta,
    block_start,
    block_stop,
)

__all__ = ["BlockOrder"]

_PLACE = ("content",)
_HOLDERS = {TEXT: "text", CITATIONS: "text", THINKING: "thinking", SIGNATURE: "thinking"}
"""The type of a piece -> that of its block."""
_ONE_BY_ONE = "blocks come one after the other, numbered in order, each with a beginning and an end"
_AGAIN = "what begins or ends a block again is left out"
_HOMELESS = "pieces that fit no open block are left out"
_LATE = "what comes after the end of a block is a block of its own"
_WHOLE_INPUT = "the input of a call comes in pieces of JSON"


@dataclass(slots=True)
class _Open:
    """The open block: the provider's number, ours, its type and id, and an input that came with its beginning."""

    native: Any
    index: int
    kind: str
    block_id: Any
    given_input: str


@dataclass(slots=True)
class _Waiting:
    """A block that waits: the provider's number, and its chunks."""

    native: Any
    chunks: list[Chunk] = field(default_factory=list)


class BlockOrder:
    """The blocks of one stream. It takes the provider's chunks, and returns chunks in hub form: those that need no
    change keep their bytes. `has_calls` is true once a call of a client's tool has begun."""

    def __init__(self, blocks: BlockNormalizer, changes: StreamChanges) -> None:
        self.has_calls = False
        self._blocks = blocks
        self._changes = changes
        self._open: _Open | None = None
        self._ended: set[Any] = set()  # the provider's numbers
        self._waiting: deque[_Waiting] = deque()  # not empty only while a call is open
        self._waits: dict[Any, _Waiting] = {}  # those that have not ended, by the provider's number
        self._count = 0

    def is_open(self, event: JsonObject) -> bool:
        """Whether a piece in hub form belongs to the open block, so that another one may follow it."""
        return self._open is not None and self._open.index == event["index"]

    def add(self, chunk: Chunk) -> list[Chunk]:
        """Take the beginning, a piece or the end of a block."""
        event = chunk.body
        native = _read_number(event, self._open)
        waiting = self._waits.get(native)
        if waiting is None or event["type"] == BLOCK_START:
            return _ADD[event["type"]](self, chunk, native)
        waiting.chunks.append(chunk)
        if event["type"] == BLOCK_STOP:
            del self._waits[native]
        return []

    def finish(self) -> list[Chunk]:
        """End the blocks that are still open, at the end of the message."""
        made: list[Chunk] = []
        while self._open is not None:
            self._changes.record_conversion(_PLACE, _ONE_BY_ONE)
            made += self._close()
        return made

    # What comes

    def _add_beginning(self, chunk: Chunk, native: Any) -> list[Chunk]:
        current = self._open
        if current is None:
            return [self._begin(chunk, native)]
        block, waiting = chunk.body["content_block"], self._waits.get(native)
        is_open = current.native == native and (current.kind, current.block_id) == (block.get("type"), block.get("id"))
        if is_open or (waiting is not None and waiting.chunks[0].body == chunk.body):
            says_more = is_open and any(block.get(key) for key in ("text", "thinking", "input"))
            self._changes.record_drop(_PLACE, _AGAIN, "loss" if says_more else "form")
            return []
        self._changes.record_conversion(_PLACE, _ONE_BY_ONE)
        self._waits[native] = _Waiting(native, [chunk])
        self._waiting.append(self._waits[native])
        return [] if current.kind in TOOL_USES and current.native != native else self._close()

    def _add_piece(self, chunk: Chunk, native: Any) -> list[Chunk]:
        kind, current = _set_kind(chunk), self._open
        if current is not None and current.native == native and _fits(kind, current.kind):
            if kind == INPUT and chunk.body["delta"].get(TEXTS[INPUT]):
                current.given_input = ""
            return [self._number(chunk, current.index)]
        holder = _HOLDERS.get(str(kind))
        if holder is None or kind == SIGNATURE:
            self._changes.record_drop(_PLACE, _HOMELESS)
            return []
        is_late = native in self._ended and (current is None or current.native != native)
        self._changes.record_conversion(_PLACE, _LATE if is_late else _ONE_BY_ONE, "loss" if is_late else "form")
        return self.add(Chunk(block_start(native, {"type": holder}))) + self.add(chunk)

    def _add_end(self, chunk: Chunk, native: Any) -> list[Chunk]:
        current = self._open
        if current is not None and current.native == native:
            return self._close(self._number(chunk, current.index))
        self._changes.record_drop(_PLACE, _AGAIN, "form")
        return []

    # What is made

    def _begin(self, chunk: Chunk, native: Any) -> Chunk:
        chunk = self._number(chunk, self._count)
        block = chunk.body["content_block"]
        if not self._blocks.normalize(block, self._count):
            chunk.raw = None
        kind, given = block.get("type"), ""
        if kind in TOOL_USES:
            given = _take_input(block)
            self.has_calls |= kind == "tool_use"
        if given:
            self._changes.record_conversion((*_PLACE, self._count, "input"), _WHOLE_INPUT)
            chunk.raw = None
        self._open = _Open(native, self._count, str(kind), block.get("id"), given)
        self._count += 1
        return chunk

    def _number(self, chunk: Chunk, index: int) -> Chunk:
        if chunk.body.get("index") == index:
            return chunk
        self._changes.record_conversion(_PLACE, _ONE_BY_ONE)
        return Chunk({**chunk.body, "index": index})

    def _close(self, end: Chunk | None = None) -> list[Chunk]:
        """End the open block. Blocks that wait begin, up to the next call that has not ended."""
        made = self._end(end)
        while self._open is None and self._waiting:
            waiting = self._waiting.popleft()
            if self._waits.get(waiting.native) is waiting:
                del self._waits[waiting.native]
            made += self._replay(waiting)
            if self._open is not None and self._waiting and self._open.kind not in TOOL_USES:
                made += self._end(None)
        return made

    def _replay(self, waiting: _Waiting) -> list[Chunk]:
        first, *others = waiting.chunks
        made = [self._begin(first, waiting.native)]
        for chunk in others:
            is_end = chunk.body["type"] == BLOCK_STOP
            made += self._end(chunk) if is_end else self._add_piece(chunk, waiting.native)
        return made

    def _end(self, end: Chunk | None) -> list[Chunk]:
        current = self._open
        assert current is not None
        self._open = None
        self._ended.add(current.native)
        given = [Chunk(block_delta(current.index, INPUT, current.given_input))] if current.given_input else []
        return [*given, Chunk(block_stop(current.index)) if end is None else self._number(end, current.index)]


def _set_kind(chunk: Chunk) -> Any:
    """The type of a piece. If it has none, it gets the one to which its text belongs."""
    delta = chunk.body.get("delta")
    if not isinstance(delta, dict):
        return None
    if delta.get("type") is None:
        kind = next((kind for kind, key in TEXTS.items() if isinstance(delta.get(key), str)), None)
        chunk.body, chunk.raw = {**chunk.body, "delta": {**delta, "type": kind}}, None
        return kind
    return delta["type"]


def _fits(kind: Any, block: str) -> bool:
    """Whether a piece of this kind belongs into a block of that type. Unknown ones do: betas add them."""
    if kind == INPUT:
        return block in TOOL_USES
    return _HOLDERS.get(str(kind), block) == block


def _take_input(block: JsonObject) -> str:
    """Take the input out of a block that begins. Returns it as JSON, empty if there is none."""
    given, block["input"] = block["input"], {}
    if isinstance(given, str):
        return given
    return orjson.dumps(given).decode() if given else ""


def _read_number(event: JsonObject, current: _Open | None) -> Any:
    """The provider's number of the block of an event; a piece or an end without one belongs to the open block."""
    native = event.get("index")
    if native is None and current is not None and event["type"] != BLOCK_START:
        return current.native
    return str(native) if isinstance(native, list | dict) else native


_Handler: TypeAlias = Callable[[BlockOrder, Chunk, Any], list[Chunk]]

_ADD: dict[str, _Handler] = {
    BLOCK_START: BlockOrder._add_beginning,
    DELTA: BlockOrder._add_piece,
    BLOCK_STOP: BlockOrder._add_end,
}
