"""Reading a provider's stream with choices: bytes in, hub chunks out, and exactly one terminal.

Theory of operation. Each item that the framer finds is first *classified*; the table `_HANDLERS` gives what happens:

    chunk   a JSON object with choices                      its hub form
    note    an object with no choices in it                 held: its usage for the end, the rest for the next chunk
    done    `[DONE]`                                        the terminal that `completeness` decides
    error   an object that reports an error                 a fault, as are the next two
    text    a bare line that is not JSON
    broken  anything else

While some choice has begun and not finished, a chunk of text may be known by its bytes (`chunk_template`). Nothing
follows a terminal.

Under the policies `repair` and `strict` chunks are normalized one by one (`chunk_normalizer`). A chunk that needed no
change keeps its original bytes.
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
    """`read_stream` of a protocol whose chunks have choices: see the module's docstring. A subclass names what
    normalizes the choices."""

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
        """How many choices a prompt of the request has, if there may be several prompts."""
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
        # A payload over several data lines holds line ends, which would tear the event apart when written again.
        raw = data if is_event and b"\n" not in data else None
        kind, payload = _classify(data, body, is_event)
        try:
            return _HANDLERS[kind](self, payload, raw)
        except Fault as fault:
            return self._fail(fault)

    # Handlers

    def _handle_chunk(self, body: JsonObject, raw: bytes | None) -> list[Output]:
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
        """An event without choices: usage, or a vendor's remarks."""
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
    """The class of an item, and the argument of its handler; `body` is its parsed JSON, None if it is none."""
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
