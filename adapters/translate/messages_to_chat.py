"""Translates a Messages stream to a chat stream, in hub form.

Theory of operation. Each event becomes a chunk with one delta. A table maps the type of the event, and a second one the
type of the delta, to a handler. What events say that are in no table is a recorded loss:

    message_start                    the role, and empty content
    a block begins                   a call: its id and name; sealed reasoning: the block; else its text, if it has one
    a delta of text, thinking        content, reasoning_content
    a signature                      reasoning_signature
    a piece of a call's input        tool_calls, counted from 0
    a citation                       is held until its block ends: it belongs to the whole text of the block
    a block ends                     its citations, with their positions in the content; `{}` for a call without input
    message_delta                    is held: the last one counts, and its counts replace earlier ones
    message_stop, or the End         the finish reason, and the usage if the client asked for it

Texts of several blocks are joined as they are: a block may begin in the middle of a sentence, where a citation does.
The blocks of tools that run at the provider have no place in chat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import annotate, number_entries
from dragoman.adapters.chat.reasoning import ReasoningBlocks, make_sealed_block, make_text_block
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.common.usage import UNASKED_USAGE
from dragoman.adapters.messages.events import (
    BLOCK_START,
    BLOCK_STOP,
    CITATIONS,
    DELTA,
    INPUT,
    MESSAGE_DELTA,
    MESSAGE_START,
    MESSAGE_STOP,
    SIGNATURE,
    TEXT,
    TEXTS,
    THINKING,
    message_stop,
)
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output
from dragoman.adapters.text_buffer import CharacterCount

from .answer_blocks import NO_PLACE, list_call_keys
from .message_envelope import begin_chat, read_refusal
from .message_usage import to_chat_counts
from .replies import CHAT_COUNTS
from .stop_reasons import PAUSED, to_finish_reason
from .unused_keys import record_unused_keys

__all__ = ["MessagesToChat"]

_NO_INPUT = "{}"
_ENDING_KEYS = ("stop_reason", "stop_sequence", "stop_details")
_BLOCK_KEYS = {
    "text": ("type", "text", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
}
_EVENT_KEYS = frozenset({"type", "index", "message", "content_block", "delta", "usage"})
_DELTA_KEYS = frozenset({"type", "text", "thinking", "signature", "partial_json", "citation"})


class _Block:
    """An open block: `start` is where its text begins in the content, `call` the index of its call."""

    __slots__ = ("call", "citations", "has_input", "input", "run_body", "start", "type")

    def __init__(self, kind: str, start: int) -> None:
        self.type = kind
        self.start = start
        self.citations: list[JsonObject] = []
        self.call = -1
        self.input: Any = None  # what the block began with
        self.has_input = False
        self.run_body: JsonObject | None = None  # of the runs that its deltas become


class MessagesToChat(StreamTranslatorBase):
    """Hub Messages outputs in, hub chat outputs out. The request of `ctx` is the client's, in the form of chat."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx
        self._changes = StreamChanges(ctx.receipt)
        self._wants_usage = wants_usage(ctx.request)
        self._envelope: JsonObject = {}
        self._usage: JsonObject = {}
        self._ending: JsonObject = {}  # what message_delta said
        self._blocks: dict[int, _Block] = {}  # those that are open, by their indexes
        self._reasoning = ReasoningBlocks()
        self._call_count = 0
        self._entry_counts: Counter[str] = Counter()  # citations and annotations
        self._length = CharacterCount()  # of the content
        self._source: JsonObject | None = None  # runs with this body continue the block `_running`
        self._running = _Block("", 0)
        self._has_finished = False

    def _translate_run(self, run: DeltaRun) -> list[Output]:
        """Translate a run to one run if it continues an open block, else event by event."""
        if run.body is not self._source and not self._begin_run(run):
            return super()._translate_run(run)
        block = self._running
        texts = run.texts if all(run.texts) else [text for text in run.texts if text]
        if block.type == "text":
            self._length.add_fragments(texts)
        elif block.type == "thinking":
            self._reasoning.add_fragments(texts)
        if not texts or block.run_body is None:
            return []
        block.has_input = True
        return [DeltaRun(block.run_body, _RUN_PLACES[block.type], texts)]

    def _begin_run(self, run: DeltaRun) -> bool:
        block = self._blocks.get(run.body.get("index", -1))
        if block is None or run.place != _TEXT_PLACES.get(block.type):
            return False
        if block.type == "thinking" and not self._reasoning.is_open:
            return False
        if block.run_body is None:
            block.run_body = self._make_chunk(_make_text_delta(block, "")).body
        self._source, self._running = run.body, block
        return True

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        self._source = None
        if self._has_finished:
            self.dropped += 1
            return []
        out: list[Output] = []
        handler = _HANDLERS.get(body["type"])
        if handler is None:
            self._drop_event(body)
        else:
            if not body.keys() <= _EVENT_KEYS:
                record_unused_keys(body, _EVENT_KEYS, (), self._ctx, "chat")
            if not self._envelope:
                self._begin(body.get("message") or {}, out)
            handler(self, body, out)
        return out

    def _drop_event(self, event: JsonObject) -> None:
        """Record what an event of an unknown type says: betas add types."""
        for key in [name for name, value in event.items() if name != "type" and value]:
            self._changes.record_drop((key,), f"chat has no place for the {key} of the event {event['type'][:100]}")

    def _begin(self, message: JsonObject, out: list[Output]) -> None:
        self._envelope = begin_chat(message, "chat.completion.chunk", self._ctx)
        if self._wants_usage:
            self._envelope["usage"] = None
        out.append(self._make_chunk({"role": "assistant", "content": ""}))

    # Handlers

    def _handle_start(self, event: JsonObject, out: list[Output]) -> None:
        message = event["message"]
        self._ctx.receipt.record_conversion(("content",), "content blocks become a message", after=("choices",))
        self._add_usage(message.get("usage"))
        for k, block in enumerate(message.get("content") or ()):
            self._open_block(k, block, out)
            self._close_block(k, out)

    def _handle_block_start(self, event: JsonObject, out: list[Output]) -> None:
        self._open_block(event["index"], event["content_block"], out)

    def _handle_delta(self, event: JsonObject, out: list[Output]) -> None:
        block, delta = self._blocks.get(event["index"]), event["delta"]
        write = _WRITERS.get(delta["type"])
        if write is not None and not delta.keys() <= _DELTA_KEYS:
            record_unused_keys(delta, _DELTA_KEYS, ("content", event["index"]), self._ctx, "chat")
        if write is None:
            self._changes.record_drop(("content", event["index"]), f"chat has no place for {delta['type']}")
        elif block is not None:
            write(self, block, delta, out)

    def _handle_block_stop(self, event: JsonObject, out: list[Output]) -> None:
        self._close_block(event["index"], out)

    def _handle_message_delta(self, event: JsonObject, out: list[Output]) -> None:
        record_unused_keys(event["delta"], _ENDING_KEYS, (), self._ctx, "chat")
        self._ending |= event["delta"]
        self._add_usage(event.get("usage"))

    def _handle_stop(self, event: JsonObject, out: list[Output]) -> None:
        for index in [*self._blocks]:
            self._close_block(index, out)
        late: JsonObject = {}
        if self._reasoning.finish(late):
            out.append(self._make_chunk(late))
        refusal = read_refusal(self._ending)
        if refusal:
            out.append(self._make_chunk({"refusal": refusal}))
        reason = self._ending.get("stop_reason")
        if reason == "pause_turn":
            self._ctx.receipt.record_drop(("stop_reason",), PAUSED)
        out.append(self._make_chunk({}, **to_finish_reason(reason, self._ending.get("stop_sequence"))))
        self._write_usage(out)
        self._has_finished = True

    def _translate_end(self, end: End) -> list[Output]:
        out: list[Output] = []
        if not self._has_finished:
            out += self._translate_chunk(message_stop())
        return [*out, end]

    # Blocks

    def _open_block(self, index: int, given: JsonObject, out: list[Output]) -> None:
        kind = given["type"]
        if kind not in _OPENERS:
            self._ctx.receipt.record_drop(("content", index), f"{NO_PLACE} {kind}")
            return
        used = list_call_keys(given) if kind == "tool_use" else _BLOCK_KEYS[kind]
        record_unused_keys(given, used, ("content", index), self._ctx, "chat")
        block = self._blocks[index] = _Block(kind, self._length.total())
        _OPENERS[kind](self, block, given, out)

    def _open_text(self, block: _Block, given: JsonObject, out: list[Output]) -> None:
        self._write_text(block, given, out)
        block.citations += given.get("citations") or ()

    def _open_thinking(self, block: _Block, given: JsonObject, out: list[Output]) -> None:
        self._add_reasoning(make_text_block(given["thinking"], given.get("signature")), out)

    def _open_sealed(self, block: _Block, given: JsonObject, out: list[Output]) -> None:
        self._add_reasoning(make_sealed_block(given["data"]), out)

    def _open_call(self, block: _Block, given: JsonObject, out: list[Output]) -> None:
        block.call, self._call_count = self._call_count, self._call_count + 1
        block.input = given.get("input")
        head = {"index": block.call, "id": given["id"], "type": "function", **copy_carried_keys(given)}
        head["function"] = {"name": given["name"], "arguments": ""}
        out.append(self._make_chunk({"tool_calls": [head]}))

    def _close_block(self, index: int, out: list[Output]) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            return
        if block.type == "tool_use" and not block.has_input:
            given = orjson.dumps(block.input).decode() if block.input else _NO_INPUT
            out.append(self._make_chunk(_make_text_delta(block, given)))
        elif block.type == "thinking":
            self._reasoning.end_text()
        elif block.citations:
            place = {"start_index": block.start, "end_index": self._length.total()}
            placed = [{**place, "citation": one} for one in block.citations]
            delta: JsonObject = {"citations": placed}
            annotate(delta)
            number_entries(delta, self._entry_counts)
            out.append(self._make_chunk(delta))

    # Deltas

    def _write_text(self, block: _Block, delta: JsonObject, out: list[Output]) -> None:
        if text := delta["text"]:
            self._length.add(text)
            out.append(self._make_chunk({"content": text}))

    def _write_thinking(self, block: _Block, delta: JsonObject, out: list[Output]) -> None:
        self._add_reasoning(make_text_block(delta["thinking"]), out)

    def _write_signature(self, block: _Block, delta: JsonObject, out: list[Output]) -> None:
        self._add_reasoning(make_text_block("", delta["signature"]), out)

    def _write_input(self, block: _Block, delta: JsonObject, out: list[Output]) -> None:
        if text := delta["partial_json"]:
            block.has_input = True
            out.append(self._make_chunk(_make_text_delta(block, text)))

    def _write_citation(self, block: _Block, delta: JsonObject, out: list[Output]) -> None:
        block.citations.append(delta["citation"])

    def _add_reasoning(self, block: JsonObject, out: list[Output]) -> None:
        delta: JsonObject = {}
        self._reasoning.add(delta, [block])
        if delta:
            out.append(self._make_chunk(delta))

    # Usage

    def _add_usage(self, usage: Any) -> None:
        """Counts are totals, so later ones replace earlier ones."""
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    def _write_usage(self, out: list[Output]) -> None:
        usage = to_chat_counts(self._usage)
        if usage is not None and not self._wants_usage:
            self._ctx.receipt.record_drop(("usage",), UNASKED_USAGE, "form")
        elif usage is not None:
            self._ctx.receipt.record_conversion(("usage",), CHAT_COUNTS)
            out.append(Chunk({**self._envelope, "choices": [], "usage": usage}))

    def _make_chunk(self, delta: JsonObject, **ending: Any) -> Chunk:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **ending}
        return Chunk({**self._envelope, "choices": [choice]})


def _make_text_delta(block: _Block, text: str) -> JsonObject:
    if block.type == "tool_use":
        return {"tool_calls": [{"index": block.call, "function": {"arguments": text}}]}
    return {"content" if block.type == "text" else "reasoning_content": text}


_Handler: TypeAlias = Callable[[MessagesToChat, JsonObject, list[Output]], None]
_Writer: TypeAlias = Callable[[MessagesToChat, _Block, JsonObject, list[Output]], None]

_HANDLERS: dict[str, _Handler] = {
    MESSAGE_START: MessagesToChat._handle_start,
    BLOCK_START: MessagesToChat._handle_block_start,
    DELTA: MessagesToChat._handle_delta,
    BLOCK_STOP: MessagesToChat._handle_block_stop,
    MESSAGE_DELTA: MessagesToChat._handle_message_delta,
    MESSAGE_STOP: MessagesToChat._handle_stop,
}
_OPENERS: dict[str, _Writer] = {
    "text": MessagesToChat._open_text,
    "thinking": MessagesToChat._open_thinking,
    "redacted_thinking": MessagesToChat._open_sealed,
    "tool_use": MessagesToChat._open_call,
}
_WRITERS: dict[str, _Writer] = {
    TEXT: MessagesToChat._write_text,
    THINKING: MessagesToChat._write_thinking,
    SIGNATURE: MessagesToChat._write_signature,
    INPUT: MessagesToChat._write_input,
    CITATIONS: MessagesToChat._write_citation,
}

_DELTA: Path = ("choices", 0, "delta")
_TEXT_PLACES: dict[str, Path] = {
    "text": ("delta", TEXTS[TEXT]),
    "thinking": ("delta", TEXTS[THINKING]),
    "tool_use": ("delta", TEXTS[INPUT]),
}
_RUN_PLACES: dict[str, Path] = {
    "text": (*_DELTA, "content"),
    "thinking": (*_DELTA, "reasoning_content"),
    "tool_use": (*_DELTA, "tool_calls", 0, "function", "arguments"),
}
