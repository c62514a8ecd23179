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

A call is not closed before its arguments are whole: until then, or until the finish, the pieces of other calls are held
(`CallOrder`), and so is everything else. Arguments that go on after the call is closed are dropped, and recorded. An
annotation is held until there is text: providers may send one before the text that it belongs to.

A signature ends the reasoning that it belongs to: further reasoning opens a new item. Sealed reasoning is an item of
its own, without a part. An item gets the next free `output_index` when it opens, so text after a call becomes a new
message after it. Empty texts open nothing. The End produces the last event, with the usage that came with the finish
or after it. Only choice 0 is translated; the reader guarantees that a complete stream has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reasoning import SEPARATOR, is_sealed, read_blocks
from dragoman.adapters.chat.tool_call_serializer import CallOrder
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
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
from .open_items import OpenBuiltInCall, OpenCall, OpenContent
from .replies import (
    CALL_KEYS,
    CHOICE_KEYS,
    MESSAGE_KEYS,
    MORE_CHOICES,
    NO_AUDIO,
    NO_TEXT,
    SECOND_CALL,
    complete_response,
)
from .tools import OriginalTool
from .unused_keys import record_unused_keys

__all__ = ["ChatToResponses"]

_CHUNK_KEYS = frozenset({"id", "object", "created", "model", "choices"})
_CHOICE_KEYS = frozenset(CHOICE_KEYS)
_CALLS = frozenset({"role", "tool_calls", "function_call"})
_CALL_PATH = ("choices", 0, "delta", "tool_calls")
_ANNOTATIONS = ("choices", 0, "delta", "annotations")
_TEXT_PATH = ("choices", 0, "delta", "content")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_NO_NAMES: Mapping[str, OriginalTool] = {}


class ChatToResponses(StreamTranslatorBase):
    """Hub chat outputs in, hub Responses outputs out.

    `base` is the response object in progress, complete except for its output. `summary`: reasoning becomes summaries.
    `names` maps names of functions to the tools that they replace. If such a tool takes free text, its call is written
    when it is complete.
    """

    def __init__(
        self,
        base: JsonObject,
        ctx: Context,
        *,
        summary: bool = False,
        names: Mapping[str, OriginalTool] = _NO_NAMES,
    ) -> None:
        super().__init__()
        self._base = base
        self._ctx = ctx
        self._reasoning_kind = SUMMARY_TEXT if summary else REASONING_TEXT
        self._names = names
        self._has_begun = False
        self._has_reasoned = False
        self._content: OpenContent | None = None
        self._run_body: JsonObject | None = None  # runs with this body continue the open text
        self._call: OpenCall | OpenBuiltInCall | None = None
        self._positions: dict[int, OpenCall | OpenBuiltInCall] = {}  # the calls, by their indexes in chat
        self._order = CallOrder()
        self._waiting: list[JsonObject] = []  # choices with something that comes after the open call
        self._annotations: list[JsonObject] = []  # those that no text has come for
        self._output: list[JsonObject] = []
        self._finish: str | None = None
        self._rest: JsonObject = {}  # what the chunks say outside of the choices

    def _translate_run(self, run: DeltaRun) -> list[Output]:
        """Translate a run to one run if it continues the open text, else chunk by chunk."""
        content = self._content
        if content is None or not (run.body is self._run_body or self._is_more_of(content, run)):
            return super()._translate_run(run)
        self._run_body = run.body
        return content.write_run(run)

    def _is_more_of(self, content: OpenContent, run: DeltaRun) -> bool:
        choice = run.body["choices"][0]
        return content.has_text and run.place == _TEXT_PATH and not choice["index"] and not choice.get("logprobs")

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        self._run_body = None
        out: list[Output] = [] if self._has_begun else self._begin()
        for key in body.keys() - _CHUNK_KEYS:
            if body[key] is not None:
                if self._rest.setdefault(key, body[key]) != body[key]:
                    self._ctx.receipt.record_drop((key,), "a later chunk has another value")
                self._rest[key] = body[key]
        for choice in body["choices"]:
            if choice["index"] == 0:
                self._translate_choice(choice, out)
            else:
                self._ctx.receipt.record_drop(("choices", choice["index"]), MORE_CHOICES)
        return out

    def _begin(self) -> list[Output]:
        self._has_begun = True
        return [Chunk(lifecycle_event(word, self._base)) for word in ("created", "in_progress")]

    def _translate_choice(self, choice: JsonObject, out: list[Output]) -> None:
        delta = choice["delta"]
        if not choice.keys() <= _CHOICE_KEYS:
            record_unused_keys(choice, CHOICE_KEYS, ("choices", 0), self._ctx, "Responses")
        if self._order.is_open and (choice.get("logprobs") or any(delta[key] for key in delta.keys() - _CALLS)):
            self._waiting.append(choice)
        else:
            self._write_content(choice, out)
        if choice.get("finish_reason"):
            self._finish = choice["finish_reason"]
        pieces = delta.get("tool_calls") or _list_legacy_call(delta)
        if delta.get("function_call") and delta.get("tool_calls"):
            self._ctx.receipt.record_drop(("choices", 0, "delta", "function_call"), SECOND_CALL)
        if pieces or self._finish:
            self._write_calls(pieces, out)
        if self._finish:
            self._close_open(out, last=True)

    def _write_content(self, choice: JsonObject, out: list[Output]) -> None:
        delta = choice["delta"]
        only_text = len(delta) == 1 and "content" in delta
        if not only_text:
            self._write_reasoning(delta, out)
        text = delta.get("content")
        if choice.get("logprobs"):
            self._write_tokens(text or "", choice["logprobs"].get("content") or [], out)
        elif text:
            self._write_text(text, [], out)
        if not only_text:
            self._write_rest(delta, out)

    def _write_reasoning(self, delta: JsonObject, out: list[Output]) -> None:
        if text := delta.get("reasoning_content"):
            before = self._content
            reasoning = self._open_reasoning(out)
            if self._has_reasoned and reasoning is not before:
                text = text.removeprefix(SEPARATOR)  # the text of another block
            self._has_reasoned = True
            if text:
                reasoning.write(self._reasoning_kind, text, [], out)
        if delta.get("reasoning_signature"):
            reasoning = self._open_reasoning(out)
            reasoning.open_part(self._reasoning_kind, out)
            reasoning.signature = delta["reasoning_signature"]
        for block in read_blocks(delta.get("reasoning_details")):
            if is_sealed(block):
                self._open_new_reasoning(out).signature = block["data"]

    def _write_tokens(self, text: str, tokens: list[JsonObject], out: list[Output]) -> None:
        writes_on = self._content is not None and self._content.has_text
        if text or (tokens and writes_on):  # a token may be part of a character, and have no text of its own
            found = add_token_bytes(tokens)
            if found != tokens:
                self._ctx.receipt.record_conversion(("choices", 0, "logprobs"), TOKEN_BYTES)
            self._write_text(text, found, out)

    def _write_rest(self, delta: JsonObject, out: list[Output]) -> None:
        record_unused_keys(delta, MESSAGE_KEYS, ("choices", 0, "delta"), self._ctx, "Responses")
        if delta.get("refusal"):
            self._open_message(out).write(REFUSAL, delta["refusal"], [], out)
        if delta.get("audio"):
            self._ctx.receipt.record_drop(("choices", 0, "delta", "audio"), NO_AUDIO)
        if delta.get("annotations"):
            self._write_annotations(delta["annotations"], out)

    def _write_annotations(self, given: Any, out: list[Output]) -> None:
        whole = filter_annotations(given)
        if whole != given:
            self._ctx.receipt.record_drop(_ANNOTATIONS, NO_ANNOTATION)
        self._annotations += whole
        if self._content is not None and self._content.has_text:
            self._release_annotations(self._content, out)

    def _write_text(self, text: str, logprobs: list[Any], out: list[Output]) -> None:
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

    def _write_calls(self, pieces: list[JsonObject], out: list[Output]) -> None:
        for piece in self._order.release(pieces, last=self._finish is not None):
            self._write_call(piece, out)
        if self._waiting and (self._finish or not self._order.is_open):
            waiting, self._waiting = self._waiting, []
            for choice in waiting:
                self._write_content(choice, out)

    def _write_call(self, piece: JsonObject, out: list[Output]) -> None:
        custom = piece.get("custom")
        said: JsonObject = custom or piece.get("function") or {}
        record_unused_keys(piece, CALL_KEYS, _CALL_PATH, self._ctx, "Responses")
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
            record_unused_keys(carried, (), _CALL_PATH, self._ctx, "a call that has ended")
        text = said.get("input") if custom else said.get("arguments")
        if text and call is self._call:
            call.write(text, out)
        elif text and text.strip():
            self._ctx.receipt.record_drop(_CALL_PATH, "text after the whole arguments of a call")

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
        out: list[Output] = [] if self._has_begun else self._begin()
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


def _list_legacy_call(delta: JsonObject) -> list[Any]:
    """The call in the deprecated key `function_call`, which has neither index nor id, as a list of pieces."""
    call = delta.get("function_call")
    return [{"index": -1, "function": call}] if isinstance(call, dict) else []
