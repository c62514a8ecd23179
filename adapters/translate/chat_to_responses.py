"""Translates a chat stream to a Responses stream, in hub form.

Theory of operation. The first chunk begins the response: `response.created`, `response.in_progress`. At most one item
is open: an item ends before the next begins, as OpenAI streams them, because clients rely on it. Each delta is written
to the open item, or opens the item that it needs:

    delta               nothing is open     with reasoning open     with a message open     with a call open
    ------------------  ------------------  ----------------------  ----------------------  --------------------------
    reasoning           opens reasoning     is written              closes it, opens anew   closes it, opens reasoning
    content, refusal    opens a message     closes it, opens one    is written              closes it, opens one
    annotation          is held             is held                 is written              is held
    new tool call       opens a call        closes it, opens one    closes it, opens one    closes it, opens one
    known tool call                                                                         is written
    finish reason       what is open is closed

`chat_stream` decides when a call is whole, and what is held until then. Arguments that go on after the call is closed
are dropped, and recorded. An annotation is held until there is text: providers may send one before the text that it
belongs to.

Sealed reasoning is an item of its own, without a part. An item gets the next free `output_index` when it opens, so text
after a call becomes a new message after it. Empty texts open nothing. The End produces the last event, with the usage
that came with the finish or after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.responses.events import (
    ARGUMENTS,
    INPUT,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    TOKEN_BYTES,
    add_token_bytes,
    lifecycle_event,
)
from dragoman.adapters.responses.response_object import to_responses_usage
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output

from .annotations import NO_ANNOTATION, to_responses_annotation
from .chat_stream import CALL_PATH, LATE_ARGUMENTS, ChatStreamTranslator, RunKind
from .open_items import OpenBuiltInCall, OpenCall, OpenContent
from .replies import CALL_KEYS, NO_TEXT, complete_response
from .tools import OriginalTool
from .unused_keys import record_unused_keys

__all__ = ["ChatToResponses"]

_ANNOTATIONS = ("choices", 0, "delta", "annotations")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_NO_NAMES: Mapping[str, OriginalTool] = {}


class ChatToResponses(ChatStreamTranslator[OpenContent]):
    """Hub chat outputs in, hub Responses outputs out.

    `base` is the response object in progress, complete except for its output. `summary`: reasoning becomes summaries.
    `names` maps names of functions to the tools that they replace. If such a tool takes free text, its call is written
    when it is complete.
    """

    protocol = "Responses"

    def __init__(
        self,
        base: JsonObject,
        ctx: Context,
        *,
        summary: bool = False,
        names: Mapping[str, OriginalTool] = _NO_NAMES,
    ) -> None:
        super().__init__(ctx)
        self._base = base
        self._reasoning_kind = SUMMARY_TEXT if summary else REASONING_TEXT
        self._names = names
        self._content: OpenContent | None = None
        self._call: OpenCall | OpenBuiltInCall | None = None
        self._positions: dict[int, OpenCall | OpenBuiltInCall] = {}  # the calls, by their indexes in chat
        self._annotations: list[JsonObject] = []  # those that no text has come for
        self._output: list[JsonObject] = []

    def _takes_run(self, kind: RunKind) -> bool:
        if kind == "arguments":
            return isinstance(self._call, OpenCall)
        content, wanted = self._content, OUTPUT_TEXT if kind == "text" else self._reasoning_kind
        return content is not None and content.kind is wanted and content.signature is None

    def _write_run(self, run: DeltaRun) -> list[Output]:
        item = self._content or self._call
        return [] if item is None or isinstance(item, OpenBuiltInCall) else item.write_run(run)

    def _begin(self, body: JsonObject | None) -> list[Output]:
        return [Chunk(lifecycle_event(word, self._base)) for word in ("created", "in_progress")]

    def _write_thought(self, reasoning: OpenContent, text: str, out: list[Output]) -> None:
        reasoning.write(self._reasoning_kind, text, [], out)

    def _sign(self, reasoning: OpenContent, signature: str, out: list[Output]) -> None:
        reasoning.open_part(self._reasoning_kind, out)
        reasoning.signature = signature

    def _write_sealed(self, data: str, out: list[Output]) -> None:
        self._open_new_reasoning(out).signature = data

    def _write_text(self, choice: JsonObject, out: list[Output]) -> None:
        text = choice["delta"].get("content")
        if choice.get("logprobs"):
            self._write_tokens(text or "", choice["logprobs"].get("content") or [], out)
        elif text:
            self._write_output(text, [], out)

    def _write_tokens(self, text: str, tokens: list[JsonObject], out: list[Output]) -> None:
        writes_on = self._content is not None and self._content.has_text
        if text or (tokens and writes_on):  # a token may be part of a character, and have no text of its own
            found = add_token_bytes(tokens)
            if found != tokens:
                self._ctx.receipt.record_conversion(("choices", 0, "logprobs"), TOKEN_BYTES)
            self._write_output(text, found, out)

    def _write_refusal(self, text: str, out: list[Output]) -> None:
        self._open_message(out).write(REFUSAL, text, [], out)

    def _write_annotations(self, delta: JsonObject, out: list[Output]) -> None:
        given = delta.get("annotations")
        if not given:
            return
        whole = filter_annotations(given)
        if whole != given:
            self._ctx.receipt.record_drop(_ANNOTATIONS, NO_ANNOTATION)
        self._annotations += whole
        if self._content is not None and self._content.has_text:
            self._release_annotations(self._content, out)

    def _write_output(self, text: str, logprobs: list[Any], out: list[Output]) -> None:
        message = self._open_message(out)
        message.write(OUTPUT_TEXT, text, logprobs, out)
        if self._annotations:
            self._release_annotations(message, out)

    def _release_annotations(self, message: OpenContent, out: list[Output]) -> None:
        parts = [part for item in self._output for part in item.get("content") or ()]
        before = sum(len(part["text"]) for part in parts if part["type"] == "output_text")
        for annotation in self._annotations:
            message.annotate(to_responses_annotation(annotation, _ANNOTATIONS, self._ctx, before), out)
        self._annotations = []

    def _write_call(self, piece: JsonObject, out: list[Output]) -> None:
        custom = piece.get("custom")
        said: JsonObject = custom or piece.get("function") or {}
        record_unused_keys(piece, CALL_KEYS, CALL_PATH, self._ctx, "Responses")
        call = self._positions.get(piece.get("index", 0))
        if call is None:
            call = self._open_call(piece, said, custom is not None, out)
        elif said.get("name"):
            call.chat_name += said["name"]
            call.set_keys(self._find_tool(call.chat_name).name_keys())
        carried = copy_carried_keys(piece)
        if call is self._call:
            call.set_keys(carried)
        else:
            record_unused_keys(carried, (), CALL_PATH, self._ctx, "a call that has ended")
        text = said.get("input") if custom else said.get("arguments")
        if text and call is self._call:
            call.write(text, out)
        elif text and text.strip():
            self._ctx.receipt.record_drop(CALL_PATH, LATE_ARGUMENTS)

    def _open_call(
        self, piece: JsonObject, said: JsonObject, custom: bool, out: list[Output]
    ) -> OpenCall | OpenBuiltInCall:
        self._close_open(out)
        new_id, name = self._ctx.new_id, said.get("name") or ""
        original = self._find_tool(name)
        if original.built_in is not None:
            built_in = OpenBuiltInCall(
                original.built_in, piece.get("id") or new_id("call"), len(self._output), self._ctx
            )
            self._call = self._positions[piece.get("index", 0)] = built_in
            return built_in
        free = custom or original.takes_free_text
        item = {
            "type": "custom_tool_call" if free else "function_call",
            "id": new_id("ctc" if free else "fc"),
            "call_id": piece.get("id") or new_id("call"),
            **original.name_keys(),
            **copy_carried_keys(piece),
        }
        kind, holds = INPUT if free else ARGUMENTS, original.takes_free_text and not custom
        call = OpenCall(item, kind, len(self._output), out, name, holds_free_text=holds)
        self._call = self._positions[piece.get("index", 0)] = call
        return call

    def _find_tool(self, name: str) -> OriginalTool:
        return self._names.get(name) or OriginalTool(name)

    def _open_reasoning(self, out: list[Output]) -> OpenContent:
        if self._content is not None and self._content.type == "reasoning" and self._content.signature is None:
            return self._content
        return self._open_new_reasoning(out)

    def _open_new_reasoning(self, out: list[Output]) -> OpenContent:
        return self._open_content({"type": "reasoning", "id": self._ctx.new_id("rs"), "summary": []}, out)

    def _open_message(self, out: list[Output]) -> OpenContent:
        if self._content is not None and self._content.type == "message":
            return self._content
        item = {"type": "message", "id": self._ctx.new_id("msg"), "role": "assistant", "content": []}
        return self._open_content(item, out)

    def _open_content(self, item: JsonObject, out: list[Output]) -> OpenContent:
        self._close_open(out)
        content = self._content = OpenContent(item, len(self._output), out)
        return content

    def _close_open(self, out: list[Output], *, last: bool = False) -> None:
        """Close the open item. In an incomplete response the last item is incomplete, and calls that are not whole."""
        item = self._content or self._call
        if item is not None:
            is_cut = self._finish in _INCOMPLETE and (last or not item.is_whole)
            self._output.append(item.close("incomplete" if is_cut else "completed", out))
        self._content = self._call = None

    def _translate_end(self, end: End) -> list[Output]:
        out: list[Output] = [] if self._has_begun else self._make_beginning(None)
        self._close_open(out, last=True)
        if self._annotations:
            self._ctx.receipt.record_drop(("choices", 0), NO_TEXT)
        reason = _INCOMPLETE.get(self._finish or "")
        status = "incomplete" if reason else "completed"
        response: JsonObject = {
            **complete_response(self._base, self._rest, self._ctx),
            "status": status,
            "completed_at": None if reason else int(self._ctx.clock()),
            "incomplete_details": {"reason": reason} if reason else None,
            "output": self._output,
            "usage": to_responses_usage(self._rest.get("usage")),
        }
        return [*out, Chunk(lifecycle_event(status, response)), end]
