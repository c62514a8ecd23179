"""Reads streams with choices, of chat and completions: bytes in, hub chunks and exactly one terminal out.

Theory of operation. The reader first *classifies* each item of the framer. The table `_HANDLERS` maps the class to a
handler, which returns the outputs:

    class   item                                   outputs
    ------  -------------------------------------  ----------------------------------------------------------------
    chunk   a JSON object with choices             the chunk in hub form
    note    a JSON object without choices          none: its usage is kept for the end, other keys for the next chunk
    done    `[DONE]`                               the terminal that `completeness` decides
    error   an object that reports an error        a fault
    text    a bare line that is not JSON           a fault
    broken  anything else                          a fault

While a choice has begun and not finished, a chunk of text may be recognized by its bytes (`chunk_template`). Nothing
follows a terminal.

Under the policies `repair` and `strict`, chunks are normalized one by one (`chunk_normalizer`). An unchanged chunk
keeps its original bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Item
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import load_validator

from .choice_normalizer import ChoiceNormalizer
from .chunk_normalizer import ChunkNormalizer
from .completeness import ChoiceCompleteness
from .reply_rules import ReplyRules
from .reply_validation import reports_error
from .stream_reader import StreamReaderBase

__all__ = ["ChoiceStreamReader"]

Class: TypeAlias = Literal["chunk", "note", "done", "error", "text", "broken"]

_DONE = b"[DONE]"


class ChoiceStreamReader(StreamReaderBase):
    """`read_stream` of a protocol whose chunks have choices. A subclass sets `protocol`, its choice normalizer."""

    wrong_event = "a stream event that is not a JSON object"
    protocol: ClassVar[type[ChoiceNormalizer]]

    def __init__(self, rules: ReplyRules, ctx: Context) -> None:
        completeness = ChoiceCompleteness(ctx)
        protocol = self.protocol.protocol
        super().__init__(rules, ctx, f"{rules.dialect}/{protocol}.event", completeness)
        hub = load_validator(f"hub/{protocol}.event")
        self._normalizer = ChunkNormalizer(
            self.protocol, rules, ctx, completeness, hub, self.choices_per_prompt(ctx.request)
        )

    def choices_per_prompt(self, request: JsonObject) -> int | None:
        """The number of choices per prompt, for a protocol that allows several prompts; else None."""
        return None

    def _process_item(self, item: Item) -> list[Output]:
        is_event = isinstance(item, Event)
        if isinstance(item, Event):
            data = item.data
            if self._template is not None and (chunk := self._template.match(data)) is not None:
                return [chunk]
        else:
            data = item.text.strip()
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            body = None
        # If a payload spans several data lines, its line ends would split the event when its bytes are written.
        raw = data if is_event and b"\n" not in data else None
        kind, payload = _classify(data, body, is_event)
        try:
            return _HANDLERS[kind](self, payload, raw)
        except Fault as fault:
            return self._fail(fault)

    # Handlers

    def _handle_chunk(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        failure = self._normalizer.take_failure(body)
        if failure is None:
            return self._read_chunk(body, raw)
        says_more = any(self.protocol.has_content(choice) for choice in body["choices"])
        return (self._read_chunk(body, None) if says_more else []) + self._fail(failure)

    def _read_chunk(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._validates_natively and not self._native.accepts(body):
            self._record_violation(body)
        normalizer = self._normalizer
        if not self._normalizes:
            normalizer.track_choices(body)
            return [Chunk(body, raw)]
        same = normalizer.normalize(body)
        self._template = None
        if not self._completeness.is_complete:
            if raw is not None and not self._validates_natively:
                normalizer.learn_template(body, raw, same)
            self._template = normalizer.template
        ending = normalizer.split_ending(body)
        if ending is not None:
            return [Chunk(body), Chunk(ending)]
        return [Chunk(body, raw if same else None)]

    def _handle_note(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        """Handle an event without choices: usage, or keys of the vendor's own."""
        if not self._normalizes:
            return [Chunk(body, raw)]
        self._normalizer.hold_event(body)
        self._template = self._template and self._normalizer.template
        return []

    def _conclude(self, cut: Fault | None = None) -> list[Output]:
        outputs = super()._conclude(cut)
        usage = self._normalizer.make_usage_chunk() if self._normalizes and isinstance(outputs[0], End) else None
        return [Chunk(usage), *outputs] if usage else outputs


def _classify(data: bytes, body: Any, is_event: bool) -> tuple[Class, Any]:
    """The class of an item, and the argument of its handler; `body` is its parsed JSON, None if it is not JSON."""
    if data == _DONE:
        return "done", None
    if body is None:
        return ("broken" if is_event else "text"), data
    if not isinstance(body, dict):
        return "broken", data
    if reports_error(body):
        return "error", body
    choices = body.get("choices")
    if isinstance(choices, list):
        return ("chunk" if choices else "note"), body
    return ("note", body) if choices is None and "usage" in body else ("broken", data)


_Handler: TypeAlias = Callable[[ChoiceStreamReader, Any, bytes | None], list[Output]]

_HANDLERS: dict[Class, _Handler] = {
    "chunk": ChoiceStreamReader._handle_chunk,
    "note": ChoiceStreamReader._handle_note,
    "done": ChoiceStreamReader._handle_done,
    "error": ChoiceStreamReader._handle_error,
    "text": ChoiceStreamReader._handle_text,
    "broken": ChoiceStreamReader._handle_broken,
}
