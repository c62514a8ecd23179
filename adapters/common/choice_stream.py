"""Reads streams with choices, of chat and completions: bytes in, hub chunks and exactly one terminal out.

Theory of operation. The reader first *classifies* each item of the framer. The table `_HANDLERS` maps the class to a
handler, which returns the outputs:

    class   item                                   outputs
    ------  -------------------------------------  ----------------------------------------------------------------
    chunk   a JSON object with choices             the chunk in hub form
    note    a JSON object without choices          none: its usage is kept for the end, other keys for the next chunk
    idle    a heartbeat                            none
    done    `[DONE]`                               the terminal that `completeness` decides
    error   an object that reports an error        a fault; before it, what else a chunk holds
    text    a bare line that is not JSON           a fault
    broken  anything else                          a fault

`stream_items` decides the last five.

While a choice has begun and not finished, a chunk of text may be recognized by its bytes (`chunk_template`). Nothing
follows a terminal.

Under the policies `repair` and `strict`, chunks are normalized one by one (`chunk_normalizer`). An unchanged chunk
keeps its original bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import load_validator

from .choice_normalizer import ChoiceNormalizer
from .chunk_normalizer import ChunkNormalizer
from .completeness import ChoiceCompleteness
from .reply_rules import ReplyRules
from .stream_items import ItemClass, classify_item
from .stream_reader import StreamReaderBase

__all__ = ["ChoiceStreamReader"]

Class: TypeAlias = ItemClass | Literal["chunk", "note"]

_NOTES = frozenset({"choices", "usage", "object"})
"""An event without choices is a note if it has one of these keys."""


class ChoiceStreamReader(StreamReaderBase):
    """`read_stream` of a protocol whose chunks have choices. A subclass sets `protocol`, its choice normalizer."""

    wrong_event = "something that is not a chunk of an answer"
    place = ("choices",)
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

    def _process_body(self, body: Any, raw: bytes | None, data: bytes, name: bytes | None) -> list[Output]:
        kind, payload = _classify(data, body, name)
        return _HANDLERS[kind](self, payload, raw)

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
        chunks = normalizer.endings.add(body, raw if same else None)
        self._template = None
        if not body["choices"]:
            normalizer.hold_event(body)  # they had ended, and said no more
            return [*chunks]
        if not self._completeness.is_complete and normalizer.endings.is_empty:
            if raw is not None and not self._validates_natively:
                normalizer.learn_template(body, raw, same)
            self._template = normalizer.template
        return [*chunks]

    def _handle_note(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        """Handle an event without choices: usage, or keys of the vendor's own."""
        if not self._normalizes:
            return [Chunk(body, raw)]
        self._normalizer.hold_event(body)
        self._template = self._template and self._normalizer.template
        return []

    def _conclude(self, cut: Fault | None = None) -> list[Output]:
        if not self._normalizes:
            return super()._conclude(cut)
        try:
            chunks = self._normalizer.endings.release()
        except Fault as fault:
            return self._fail(fault)
        terminal = super()._conclude(cut)
        usage = self._normalizer.make_usage_chunk() if isinstance(terminal[0], End) else None
        self.usage = self._normalizer.usage
        return [*chunks, *([Chunk(usage)] if usage else []), *terminal]


def _classify(data: bytes, body: Any, name: bytes | None) -> tuple[Class, Any]:
    """The class of an item, and the argument of its handler; `body` and `name` are those of `classify_item`."""
    if name != b"error" and type(body) is dict and type(body.get("choices")) is list and body["choices"]:
        return "chunk", body
    kind, payload = classify_item(data, body, name)
    if kind is not None:
        return kind, payload
    is_note = isinstance(body, dict) and body.get("choices") in (None, []) and body.keys() & _NOTES
    return ("note", body) if is_note else ("broken", data)


_Handler: TypeAlias = Callable[[ChoiceStreamReader, Any, bytes | None], list[Output]]

_HANDLERS: dict[Class, _Handler] = {
    "chunk": ChoiceStreamReader._handle_chunk,
    "note": ChoiceStreamReader._handle_note,
    "idle": ChoiceStreamReader._handle_idle,
    "done": ChoiceStreamReader._handle_done,
    "error": ChoiceStreamReader._handle_error,
    "text": ChoiceStreamReader._handle_text,
    "broken": ChoiceStreamReader._handle_broken,
}
