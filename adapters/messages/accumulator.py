"""Accumulates the events of a Messages stream into its message.

Blocks are in the order in which they began. Texts are joined only when the message is built. Events that do not match
earlier ones are ignored: adding an event never fails.

Source: anthropic 2.12.0, lib.streaming, accumulate_event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.streams import DeltaRun
from dragoman.adapters.text_buffer import TextBuffer

from .endings import FINISH_REASONS
from .events import BLOCK_START, CITATIONS, DELTA, INPUT, MESSAGE_DELTA, MESSAGE_START, SIGNATURE, TEXTS
from .inputs import parse_input

__all__ = ["Accumulator", "assemble_message"]

_CUT_SHORT = frozenset({word for word, finish in FINISH_REASONS.items() if finish in ("length", "content_filter")})
_OF_MESSAGE = ("context_management", "input_transformations")


class Accumulator:
    """The message of one stream so far."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: dict[int, _Block] = {}

    @property
    def has_begun(self) -> bool:
        """True once `message_start` has come."""
        return bool(self._message)

    def add(self, event: JsonObject) -> None:
        """Add one event in hub form."""
        handler = _HANDLERS.get(event["type"])
        if handler is not None:
            handler(self, event)

    def add_run(self, run: DeltaRun) -> None:
        """Add coalesced deltas."""
        block = self._blocks.get(run.body["index"])
        if block is not None:
            block.buffer(str(run.place[-1])).add_fragments(run.texts)

    def build(self) -> JsonObject:
        """The message so far."""
        content = [*self._message.get("content", ()), *(block.build() for block in self._blocks.values())]
        return {**self._message, "content": content}

    def has_broken_input(self) -> bool:
        """Whether the pieces of an input are no JSON object."""
        return any(block.has_broken_input() for block in self._blocks.values())

    # Handlers

    def _begin(self, event: JsonObject) -> None:
        self._message = {**event["message"]}

    def _begin_block(self, event: JsonObject) -> None:
        self._blocks[event["index"]] = _Block(event["content_block"])

    def _add_delta(self, event: JsonObject) -> None:
        block, delta = self._blocks.get(event["index"]), event["delta"]
        if block is None:
            return
        key = TEXTS.get(delta["type"])
        if key is not None and isinstance(delta.get(key), str):
            block.add_text(delta["type"], key, delta[key])
        elif delta["type"] == CITATIONS:
            block.citations.append(delta["citation"])
        elif key is None:
            block.others.update({name: value for name, value in delta.items() if name != "type"})

    def _change(self, event: JsonObject) -> None:
        usage: Any = event.get("usage") or {}
        self._message.update({key: value for key, value in event["delta"].items() if value is not None})
        known = {key: value for key, value in usage.items() if value is not None}
        self._message["usage"] = {**self._message.get("usage", {}), **known}
        self._message.update({key: event[key] for key in _OF_MESSAGE if event.get(key) is not None})


class _Block:
    """One block, with the texts and citations that have come since it began."""

    __slots__ = ("body", "citations", "others", "texts")

    def __init__(self, body: JsonObject) -> None:
        self.body = body
        self.texts: dict[str, TextBuffer] = {}
        self.citations: list[Any] = []
        self.others: JsonObject = {}

    def buffer(self, key: str) -> TextBuffer:
        """The buffer of a text, which begins with the text that the block had from the start."""
        found = self.texts.get(key)
        if found is None:
            given = self.body.get(key)
            found = self.texts[key] = TextBuffer(given) if isinstance(given, str) else TextBuffer()
        return found

    def add_text(self, kind: str, key: str, text: str) -> None:
        """Add a piece of a text. A signature is no piece: the last one counts."""
        if kind == SIGNATURE:
            self.texts[key] = TextBuffer(text)
        else:
            self.buffer(key).add(text)

    def has_broken_input(self) -> bool:
        """Whether the pieces of its input are no JSON object."""
        pieces = self.texts.get(TEXTS[INPUT])
        given = "" if pieces is None else pieces.text()
        return bool(given) and parse_input(given) is None

    def build(self) -> JsonObject:
        """The block so far. An input that is no JSON object stays as it was when the block began."""
        texts = {key: pieces.text() for key, pieces in self.texts.items()}
        body = {**self.body, **self.others}
        given = texts.pop(TEXTS[INPUT], None)
        found = parse_input(given) if given else None
        if found is not None:
            body["input"] = found
        body.update(texts)
        if self.citations:
            body["citations"] = [*(body.get("citations") or ()), *self.citations]
        return body


_Handler: TypeAlias = Callable[[Accumulator, JsonObject], None]

_HANDLERS: dict[str, _Handler] = {
    MESSAGE_START: Accumulator._begin,
    BLOCK_START: Accumulator._begin_block,
    DELTA: Accumulator._add_delta,
    MESSAGE_DELTA: Accumulator._change,
}


def assemble_message(events: Sequence[JsonObject]) -> JsonObject:
    """Join the events of a complete stream into its message.

    Raises Fault if the pieces of an input are no JSON object, unless the answer was cut short: then it is empty, as in
    a whole message of Anthropic's.
    """
    accumulator = Accumulator()
    for event in events:
        accumulator.add(event)
    message = accumulator.build()
    if message.get("stop_reason") not in _CUT_SHORT and accumulator.has_broken_input():
        raise invalid_reply("the input of a call is no JSON object")
    return message
