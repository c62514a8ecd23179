"""Translates a chat stream to a Messages stream, in hub form.

Theory of operation. The first chunk begins the message: `message_start`. At most one content block is open: it ends
before the next begins. Each delta is written to the open block, or opens the block that it needs:

    delta               nothing is open     with thinking open      with text open          with a call open
    ------------------  ------------------  ----------------------  ----------------------  --------------------------
    reasoning           opens thinking      is written              closes it, opens one    closes it, opens one
    content, refusal    opens text          closes it, opens one    is written              closes it, opens one
    citation            is held             is held                 is written              is held
    new tool call       opens a call        closes it, opens one    closes it, opens one    closes it, opens one
    known tool call                                                                         is written
    finish reason       what is open is closed

`chat_stream` decides when a call is whole, and what is held until then. A call begins with its name, so its block opens
with the first piece of its arguments. Arguments that go on after the call is closed are dropped, and recorded. Sealed
reasoning is a block of its own, without deltas.

A citation belongs to a whole block of text. If it comes with the text that it belongs to, this text is a block of its
own. Else it belongs to the block that is open, and its position is lost.

The End produces `message_delta`, with the reason of the end and the usage that came with the finish or after it, and
`message_stop`. A refusal is written as text, and makes the reason `refusal`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import CITATIONS
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.messages.events import (
    INPUT,
    TEXT,
    THINKING,
    message_delta,
    message_start,
    message_stop,
)
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output
from dragoman.adapters.text_buffer import CharacterCount

from .chat_stream import CALL_PATH, LATE_ARGUMENTS, ChatStreamTranslator, RunKind
from .message_citations import PlacedCitation, list_placed_citations
from .message_envelope import CHAT_KEYS, begin_message, explain_refusal
from .message_tools import list_long_names
from .message_usage import convert_usage
from .open_blocks import OpenBlock
from .replies import CALL_KEYS, NO_TEXT
from .stop_reasons import ENDING_KEYS, read_stop_reason
from .tools import encode_free_text
from .unused_keys import record_unused_keys

__all__ = ["BLOCKS", "FREE_TEXT", "ChatToMessages"]

_DELTA = ("choices", 0, "delta")
_KINDS: Mapping[RunKind, str] = {"text": TEXT, "reasoning": THINKING, "arguments": INPUT}

BLOCKS = "a choice becomes content blocks"
FREE_TEXT = "the free text of a call becomes its input"
"""Reasons of changes of form."""

_THINKING = {"type": "thinking", "thinking": "", "signature": ""}
_NO_PLACE = "Messages has no place for it"
_WHOLE_BLOCK = "in a stream a citation belongs to the whole block of text that is open"
_LATE_HEAD = "a part of a call's name, or another key, after its arguments began"


class _OpenCall:
    """A call of chat. Its block opens when its name is whole; free text is written when it is complete."""

    __slots__ = ("block", "free_text", "head")

    def __init__(self, head: JsonObject, *, is_free: bool) -> None:
        self.head = head
        self.block: OpenBlock | None = None
        self.free_text: list[str] | None = [] if is_free else None


class ChatToMessages(ChatStreamTranslator[OpenBlock]):
    """Hub chat outputs in, hub Messages outputs out. `request` is the client's, in the form of Messages."""

    protocol = "Messages"
    choice_keys = ChatStreamTranslator.choice_keys | ENDING_KEYS
    message_keys = ChatStreamTranslator.message_keys | {CITATIONS}

    def __init__(self, request: JsonObject, ctx: Context) -> None:
        super().__init__(ctx)
        self._stops: Collection[str] = request.get("stop_sequences") or ()
        self._names = list_long_names(request)
        self._count = 0  # of the blocks that have begun
        self._block: OpenBlock | None = None
        self._call: _OpenCall | None = None
        self._calls: dict[int, _OpenCall] = {}  # by their indexes in chat
        self._length = CharacterCount()  # of the content
        self._start = 0  # where the open block of text begins in the content
        self._citations: list[PlacedCitation] = []  # those that no text has come for
        self._known: Collection[str] = ()  # keys of chunks that are translated, or were in the first chunk
        self._refusal = ""

    def _takes_run(self, kind: RunKind) -> bool:
        block = self._block
        return block is not None and block.kind == _KINDS[kind] and not block.is_done and not self._citations

    def _write_run(self, run: DeltaRun) -> list[Output]:
        if self._block is None:
            return []
        if self._run_kind == "text":
            self._length.add_fragments(run.texts)
        return self._block.write_run(run)

    def _begin(self, body: JsonObject | None) -> list[Output]:
        self._ctx.receipt.record_conversion(("choices",), BLOCKS, after=("content",))
        self._known = CHAT_KEYS.union(body or ())
        return [Chunk(message_start(begin_message(body or {}, self._ctx)))]

    # Texts

    def _open_reasoning(self, out: list[Output]) -> OpenBlock:
        return self._continue_block(THINKING, out) or self._open_block({**_THINKING}, THINKING, out)

    def _write_thought(self, reasoning: OpenBlock, text: str, out: list[Output]) -> None:
        reasoning.write(text, out)

    def _sign(self, reasoning: OpenBlock, signature: str, out: list[Output]) -> None:
        reasoning.sign(signature, out)

    def _write_sealed(self, data: str, out: list[Output]) -> None:
        self._open_block({"type": "redacted_thinking", "data": data}, THINKING, out).is_done = True

    def _write_text(self, choice: JsonObject, out: list[Output]) -> None:
        delta = choice["delta"]
        text: str | None = delta.get("content")
        if choice.get("logprobs"):
            self._ctx.receipt.record_drop(("choices", 0, "logprobs"), _NO_PLACE)
        if not text:
            return
        if self._block is not None and len(delta) > 1 and self._begins_cited_block(delta):
            self._close_open(out)
        block = self._open_text(out)
        block.write(text, out)
        self._length.add(text)
        if self._citations:
            citations, self._citations = self._citations, []
            self._cite(block, citations, out)

    def _begins_cited_block(self, delta: JsonObject) -> bool:
        """Whether the delta has citations of exactly its own text."""
        placed, start = delta.get("citations"), self._length.total()
        return isinstance(placed, list) and any(_covers(one, start, start + len(delta["content"])) for one in placed)

    def _write_refusal(self, text: str, out: list[Output]) -> None:
        self._refusal += text
        self._open_text(out).write(text, out)

    def _write_annotations(self, delta: JsonObject, out: list[Output]) -> None:
        citations = list_placed_citations(delta, _DELTA, self._ctx)
        if citations and self._block is not None and self._block.kind == TEXT and self._block.has_text:
            self._cite(self._block, citations, out)
        else:
            self._citations += citations

    def _cite(self, block: OpenBlock, citations: list[PlacedCitation], out: list[Output]) -> None:
        for one in citations:
            block.cite(one["citation"], out)
            if _covers(one, self._start, self._length.total()):
                block.is_done = True
            else:
                self._ctx.receipt.record_conversion((*_DELTA, "citations"), _WHOLE_BLOCK, "loss")

    def _open_text(self, out: list[Output]) -> OpenBlock:
        block = self._continue_block(TEXT, out)
        if block is None:
            block = self._open_block({"type": "text", "text": ""}, TEXT, out)
            self._start = self._length.total()
        return block

    # Calls

    def _write_call(self, piece: JsonObject, out: list[Output]) -> None:
        custom = piece.get("custom")
        said: JsonObject = custom or piece.get("function") or {}
        record_unused_keys(piece, CALL_KEYS, CALL_PATH, self._ctx, self.protocol)
        call = self._calls.get(piece.get("index", 0))
        if call is None:
            call = self._begin_call(piece, custom is not None, out)
        self._extend_head(call, said.get("name") or "", copy_carried_keys(piece))
        text = said.get("input") if custom else said.get("arguments")
        if not text:
            return
        if call is not self._call:
            if text.strip():
                self._ctx.receipt.record_drop(CALL_PATH, LATE_ARGUMENTS)
        elif call.free_text is not None:
            call.free_text.append(text)
        else:
            self._open_call(call, out).write(text, out)

    def _begin_call(self, piece: JsonObject, is_free: bool, out: list[Output]) -> _OpenCall:
        self._close_open(out)
        head: JsonObject = {
            "type": "tool_use",
            "id": piece.get("id") or self._ctx.new_id("toolu"),
            "name": "",
            "input": {},
        }
        call = self._call = self._calls[piece.get("index", 0)] = _OpenCall(head, is_free=is_free)
        return call

    def _extend_head(self, call: _OpenCall, name: str, carried: JsonObject) -> None:
        """Add what a piece says of a call besides its arguments. After they have begun, it is a recorded loss."""
        if call.block is None:
            call.head.update(carried, name=call.head["name"] + name)
        elif name or carried:
            self._ctx.receipt.record_drop(CALL_PATH, _LATE_HEAD)

    def _open_call(self, call: _OpenCall, out: list[Output]) -> OpenBlock:
        if call.block is None:
            call.head["name"] = self._names.get(call.head["name"], call.head["name"])
            call.block = self._block = OpenBlock(call.head, INPUT, self._count, out)
            self._count += 1
        return call.block

    # Blocks

    def _continue_block(self, kind: str, out: list[Output]) -> OpenBlock | None:
        """The open block, if it takes more deltas of this kind; else it is closed."""
        block = self._block
        if block is not None and block.kind == kind and not block.is_done:
            return block
        self._close_open(out)
        return None

    def _open_block(self, block: JsonObject, kind: str, out: list[Output]) -> OpenBlock:
        self._close_open(out)
        opened = self._block = OpenBlock(block, kind, self._count, out)
        self._count += 1
        return opened

    def _close_open(self, out: list[Output], *, last: bool = False) -> None:
        if self._call is not None:
            block = self._open_call(self._call, out)
            if self._call.free_text is not None:
                self._ctx.receipt.record_conversion(CALL_PATH, FREE_TEXT)
                block.write(encode_free_text("".join(self._call.free_text)), out)
        if self._block is not None:
            self._block.close(out)
        self._block = self._call = None

    def _translate_end(self, end: End) -> list[Output]:
        out = [] if self._has_begun else self._make_beginning(None)
        self._close_open(out, last=True)
        if self._citations:
            self._ctx.receipt.record_drop(("choices", 0), NO_TEXT)
        record_unused_keys(self._rest, self._known, (), self._ctx, self.protocol)
        reason = read_stop_reason(self._ending, self._stops, refused=bool(self._refusal))
        more = explain_refusal(self._refusal) if self._refusal and reason.reason == "refusal" else {}
        usage = convert_usage(self._rest.get("usage"), self._rest.get("service_tier"), self._ctx)
        out.append(Chunk(message_delta(reason.reason, reason.sequence, usage, **more)))
        return [*out, Chunk(message_stop()), end]


def _covers(placed: Any, start: int, end: int) -> bool:
    return isinstance(placed, dict) and placed.get("start_index") == start and placed.get("end_index") == end
