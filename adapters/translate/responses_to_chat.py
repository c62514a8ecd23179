"""Translates a Responses stream to a chat stream, in hub form.

Theory of operation. Each event becomes a chunk with one delta. A table maps the event's type to a handler. Events that
chat does not have are ignored:

    response.created, or whatever comes first      the role, and empty content
    a piece of output text, refusal, reasoning     content, refusal, reasoning_content
    a call is added; a piece of its arguments      tool_calls, counted from 0
    a text, an item is done                        nothing, if its pieces came; else the whole, as one piece
    completed, incomplete                          the output that no event before has shown; the finish, and the
                                                   usage if the client asked for it
    failed, cancelled                              a fault

The texts of two messages are separated by an empty line, and positions in a text become positions in the content. So
are the texts of reasoning. An item may have reasoning text or summaries: if it has both, the kind that came first is
used. A failed response is an error in chat, so its last event ends the stream with a fault, and the End after it is
dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import number_entries
from dragoman.adapters.chat.reasoning import SEPARATOR, ReasoningBlocks, make_sealed_block, make_text_block
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.common.usage import UNASKED_USAGE
from dragoman.adapters.responses.events import (
    ARGUMENTS,
    BY_DELTA,
    BY_DONE,
    INPUT,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    TextKind,
    read_position,
)
from dragoman.adapters.streams import Chunk, Output

from .annotations import NO_ANNOTATION, to_chat_annotation
from .reasoning import ONE_REASONING, has_parts
from .replies import CHAT_COUNTS, read_arguments, read_envelope, read_failure, to_chat_usage
from .unused_keys import ITEM_KEYS, PART_KEYS, record_unused_keys

__all__ = ["ResponsesToChat"]

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
_KEYS = {
    OUTPUT_TEXT: "content",
    REFUSAL: "refusal",
    REASONING_TEXT: "reasoning_content",
    SUMMARY_TEXT: "reasoning_content",
}
_SPOKEN = frozenset({OUTPUT_TEXT, REFUSAL})
_PLACES = ("type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "annotation_index")
_TEXTS = ("delta", "text", "refusal", "arguments", "input", "name")
_VALUES = ("response", "item", "part", "annotation", "logprobs", "obfuscation")  # obfuscation is padding
_EVENT_KEYS = frozenset({*_PLACES, *_TEXTS, *_VALUES})
_BY_PART = {kind.holder: kind for kind in _KEYS}
_CALLS = {"function_call": ARGUMENTS, "custom_tool_call": INPUT}


class ResponsesToChat(StreamTranslatorBase):
    """Hub Responses outputs in, hub chat outputs out."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx
        self._changes = StreamChanges(ctx.receipt)
        self._wants_usage = wants_usage(ctx.request)
        self._envelope: JsonObject = {}
        self._calls: dict[int, int] = {}  # output index -> index among the calls
        self._thoughts: dict[int, TextKind] = {}
        self._thought: tuple[int, int] | None = None  # output index and position of the last reasoning
        self._blocks = ReasoningBlocks()
        self._texts_sent: set[tuple[int, TextKind, int]] = set()  # those that have come, or begun
        self._annotation_counts: Counter[tuple[int, int]] = Counter()  # annotations per part
        self._entry_counts: Counter[str] = Counter()  # annotations of the stream
        self._speaker: dict[TextKind, int] = {}  # kind of text -> output index of the message that it came from
        self._length = 0  # characters of the content
        self._starts: dict[tuple[int, int], int] = {}  # part -> where its text begins in the content
        self._with_signature: set[int] = set()
        self._with_carried: set[int] = set()  # output indexes of the calls whose other keys were sent
        self._unused: set[str] = set()
        self._response: JsonObject = {}  # what all events say of the response
        self._places: dict[str | None, int] = {}  # id of an item -> output index
        self._has_finished = False

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        if self._has_finished:
            self.dropped += 1
            return []
        out: list[Output] = [] if self._envelope else self._begin(body)
        if isinstance(body.get("response"), dict):
            self._response |= {key: value for key, value in body["response"].items() if value}
        if isinstance(body.get("part"), dict):
            record_unused_keys(body["part"], PART_KEYS, ("output", body["output_index"]), self._ctx, "chat")
        if not body.keys() <= _EVENT_KEYS:
            self._record_unused_keys(body)
        kind = BY_DELTA.get(body["type"])
        if kind is not None:
            self._write_piece(kind, body, body["delta"], out)
        elif body["type"] in BY_DONE:
            self._write_whole(BY_DONE[body["type"]], body, out)
        elif body["type"] in _HANDLERS:
            _HANDLERS[body["type"]](self, body, out)
        return out

    def _begin(self, event: JsonObject) -> list[Output]:
        response = event.get("response") or {}
        self._envelope = {
            "id": response.get("id") or self._ctx.new_id("chatcmpl"),
            "object": "chat.completion.chunk",
            "created": int(response.get("created_at") or self._ctx.clock()),
            "model": response.get("model") or self._ctx.target.model,
        }
        if self._wants_usage:
            self._envelope["usage"] = None
        return [self._make_delta({"role": "assistant", "content": ""})]

    def _record_unused_keys(self, event: JsonObject) -> None:
        """Record once per stream each key of an event that chunks have no place for."""
        for key in event.keys() - _EVENT_KEYS - self._unused:
            self._unused.add(key)
            self._ctx.receipt.record_drop((key,), "a chunk of chat has no place for it")

    # Handlers

    def _write_piece(self, kind: TextKind, event: JsonObject, text: str, out: list[Output]) -> None:
        index = event["output_index"]
        if kind in _KEYS:
            if self._is_other_kind(kind, index):
                if text:
                    self._changes.record_drop(("output", index), ONE_REASONING)
                return
            if text:
                self._texts_sent.add((index, kind, read_position(event, kind.index)))
            if text and kind in _SPOKEN:
                text = self._place_text(kind, index, read_position(event, kind.index), text)
            if _KEYS[kind] == "reasoning_content":
                self._write_reasoning((index, read_position(event, kind.index)), text, out)
                return
            logprobs = event.get("logprobs") if kind is OUTPUT_TEXT else None
            if text or logprobs:
                out.append(self._make_delta({_KEYS[kind]: text}, logprobs=_to_chat_logprobs(logprobs)))
        elif index in self._calls:
            if text:
                self._texts_sent.add((index, kind, 0))
            out.append(
                self._make_delta({"tool_calls": [{"index": self._calls[index], **_make_call_delta(kind, text)}]})
            )

    def _write_reasoning(self, place: tuple[int, int], text: str, out: list[Output]) -> None:
        """Write a piece of reasoning. `place` is its output index and its position: each is a text of its own."""
        if not text:
            return
        last, self._thought = self._thought, place
        if last is not None and last[0] != place[0]:
            self._blocks.end_text()
        is_next_part = last is not None and last[0] == place[0] and last != place
        self._add_blocks([make_text_block(SEPARATOR + text if is_next_part else text)], out)

    def _write_seal(self, index: int, item: JsonObject, out: list[Output]) -> None:
        sealed, has_text = item["encrypted_content"], self._thought is not None and self._thought[0] == index
        signs = has_text or has_parts(item)
        if not has_text:
            self._blocks.end_text()
        self._add_blocks([make_text_block("", sealed) if signs else make_sealed_block(sealed)], out)
        self._thought = None

    def _add_blocks(self, blocks: list[JsonObject], out: list[Output]) -> None:
        delta: JsonObject = {}
        self._blocks.add(delta, blocks)
        if delta:
            out.append(self._make_delta(delta))

    def _place_text(self, kind: TextKind, index: int, part: int, text: str) -> str:
        """The text, behind a separator if it begins another message; where its part begins in the content is kept."""
        last = self._speaker.get(kind, index)
        self._speaker[kind] = index
        before = SEPARATOR if last != index else ""
        if kind is OUTPUT_TEXT:
            self._starts.setdefault((index, part), self._length + len(before))
            self._length += len(before) + len(text)
        return before + text

    def _write_whole(self, kind: TextKind, event: JsonObject, out: list[Output]) -> None:
        at, text = (event["output_index"], kind, read_position(event, kind.index)), event.get(kind.key)
        if text and at not in self._texts_sent:
            self._write_piece(kind, event, text, out)

    def _handle_item_added(self, event: JsonObject, out: list[Output]) -> None:
        item, index = event["item"], event["output_index"]
        self._places[item.get("id")] = index
        record_unused_keys(item, ITEM_KEYS.get(item["type"], tuple(item)), ("output", index), self._ctx, "chat")
        kind = _CALLS.get(item["type"])
        if kind is None or index in self._calls:
            return
        self._calls[index] = len(self._calls)
        call = _make_call_delta(kind, "", item["name"])
        call_type = "function" if kind is ARGUMENTS else "custom"
        head = {"index": self._calls[index], "id": item["call_id"], "type": call_type, **copy_carried_keys(item)}
        if copy_carried_keys(item):
            self._with_carried.add(index)
        out.append(self._make_delta({"tool_calls": [{**head, **call}]}))

    def _handle_item_done(self, event: JsonObject, out: list[Output]) -> None:
        item, index = event["item"], event["output_index"]
        self._handle_item_added(event, out)
        kind = _CALLS.get(item["type"])
        if kind is not None:
            if (index, kind, 0) not in self._texts_sent:
                said = read_arguments(item, ("output", index), self._ctx) if kind is ARGUMENTS else item[kind.key]
                self._write_whole(kind, {"output_index": index, kind.key: said}, out)
            self._write_carried(index, item, out)
        elif item["type"] in ("message", "reasoning"):
            for place in ("content", "summary"):
                for position, part in enumerate(item.get(place) or ()):
                    self._handle_part_done(index, position, part, out)
            if item.get("encrypted_content") and index not in self._with_signature:
                self._with_signature.add(index)
                self._write_seal(index, item, out)
        else:
            self._ctx.receipt.record_drop(("output", index), f"chat has no place for {item['type']} items")

    def _write_carried(self, index: int, item: JsonObject, out: list[Output]) -> None:
        """Write the keys of a call that came only with its end."""
        carried = copy_carried_keys(item)
        if carried and index not in self._with_carried:
            self._with_carried.add(index)
            out.append(self._make_delta({"tool_calls": [{"index": self._calls[index], **carried}]}))

    def _handle_part_done(self, index: int, position: int, part: JsonObject, out: list[Output]) -> None:
        kind = _BY_PART.get(part["type"])
        record_unused_keys(part, PART_KEYS, ("output", index, "content", position), self._ctx, "chat")
        if kind is not None:
            whole = {"output_index": index, kind.index: position, kind.key: part.get(kind.key)}
            self._write_whole(kind, {**whole, "logprobs": part.get("logprobs")}, out)
        for annotation in (part.get("annotations") or [])[self._annotation_counts[index, position] :]:
            place = {"output_index": index, "content_index": position}
            self._handle_annotation({**place, "annotation": annotation}, out)

    def _handle_annotation(self, event: JsonObject, out: list[Output]) -> None:
        annotation = event.get("annotation")
        if not isinstance(annotation, dict):
            return
        part = event["output_index"], event.get("content_index", 0)
        self._annotation_counts[part] += 1
        if (made := to_chat_annotation(annotation, self._starts.get(part, self._length))) is None:
            self._ctx.receipt.record_drop(("output", event["output_index"]), NO_ANNOTATION)
        else:
            delta: JsonObject = {"annotations": [made]}
            number_entries(delta, self._entry_counts)
            out.append(self._make_delta(delta))

    def _handle_end(self, event: JsonObject, out: list[Output]) -> None:
        response = event["response"]
        for index, item in self._assign_places(response.get("output") or []):
            self._handle_item_done({"output_index": index, "item": item}, out)
        if event["type"] == "response.incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason")
            word = _FINISH.get(str(reason), "length")
        else:
            word = "tool_calls" if self._calls else "stop"
        late: JsonObject = {}
        if self._blocks.finish(late):
            out.append(self._make_delta(late))
        self._envelope |= read_envelope(self._response, self._ctx)
        out.append(self._make_delta({}, finish=word))
        usage = to_chat_usage(response.get("usage"))
        if usage is not None and not self._wants_usage:
            self._ctx.receipt.record_drop(("usage",), UNASKED_USAGE, "form")
        elif usage is not None:
            self._ctx.receipt.record_conversion(("usage",), CHAT_COUNTS)
            out.append(Chunk({**self._envelope, "choices": [], "usage": usage}))
        self._has_finished = True

    def _handle_failure(self, event: JsonObject, out: list[Output]) -> None:
        status = event["type"].removeprefix("response.")
        failure = read_failure({**event["response"], "status": status})
        out[:] = [failure.locate(self._ctx.receipt, self._ctx.call.body or None)]
        self._has_ended = True

    # Helpers

    def _assign_places(self, output: list[JsonObject]) -> list[tuple[int, JsonObject]]:
        """Pair the items of the last event with the output indexes of earlier events, or with free ones.

        If the last event lacks an item of earlier events, the item at its index is that item with another id.
        """
        ids = {item.get("id") for item in output}
        renamed = {index for known, index in self._places.items() if known not in ids}
        free = max(self._places.values(), default=-1) + 1
        known = [(self._places.get(item.get("id")), position, item) for position, item in enumerate(output)]
        return [
            (free + position if index is None else index, item)
            for index, position, item in known
            if index is not None or position not in renamed
        ]

    def _is_other_kind(self, kind: TextKind, index: int) -> bool:
        """Whether this is reasoning of an item that has already had the other kind of reasoning."""
        if kind is not REASONING_TEXT and kind is not SUMMARY_TEXT:
            return False
        return self._thoughts.setdefault(index, kind) is not kind

    def _make_delta(self, delta: JsonObject, *, logprobs: JsonObject | None = None, finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return Chunk({**self._envelope, "choices": [choice]})


def _make_call_delta(kind: TextKind, text: str, name: str | None = None) -> JsonObject:
    said = {kind.key: text} if name is None else {"name": name, kind.key: text}
    return {"function" if kind is ARGUMENTS else "custom": said}


def _to_chat_logprobs(tokens: list[Any] | None) -> JsonObject | None:
    return {"content": [_to_chat_token(token) for token in tokens], "refusal": None} if tokens else None


def _to_chat_token(token: JsonObject) -> JsonObject:
    top = [{"bytes": None, **one} for one in token.get("top_logprobs") or ()]
    return {"bytes": None, **token, "top_logprobs": top}


_Handler: TypeAlias = Callable[[ResponsesToChat, JsonObject, list[Output]], None]

_HANDLERS: dict[str, _Handler] = {
    "response.output_item.added": ResponsesToChat._handle_item_added,
    "response.output_item.done": ResponsesToChat._handle_item_done,
    "response.output_text.annotation.added": ResponsesToChat._handle_annotation,
    "response.completed": ResponsesToChat._handle_end,
    "response.incomplete": ResponsesToChat._handle_end,
    "response.failed": ResponsesToChat._handle_failure,
    "response.cancelled": ResponsesToChat._handle_failure,
}
