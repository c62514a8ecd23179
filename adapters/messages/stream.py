"""Reads Messages streams: bytes in, hub events and exactly one terminal out.

Theory of operation. The reader first *classifies* each item of the framer:

    start    `message_start`                                 idle     a heartbeat, as `ping`
    block    `content_block_start` or `_stop`                done     `[DONE]`, which some servers send
    piece    `content_block_delta`                           error    `event: error`, an object that reports an error
    delta    `message_delta`                                 text     a bare line that is not JSON
    stop     `message_stop`                                  broken   anything else
    other    an event of another type: betas add some

`stream_items` decides those on the right.

If an event has no `type`, its `event:` line names it. The table `_TABLE` maps the state and the class to a handler,
which returns the outputs. `message_stop` and `[DONE]` are signs of the stream's end: `completeness` decides the
terminal. Nothing follows it.

    empty    the message has not begun; the next event of it begins it. If that event is no `start`, one is made
    open     the message has begun

Under the policies `repair` and `strict`, events are normalized one by one (`event_normalizer`). An unchanged event
keeps its bytes. While a block is open, its pieces are recognized by their bytes (`padded_template`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import MessageCompleteness
from dragoman.adapters.common.finish_words import has_finished
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_items import ItemClass, classify_item
from dragoman.adapters.common.stream_reader import StreamReaderBase
from dragoman.adapters.common.usage import select_counts
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, Output
from dragoman.adapters.validation import load_validator

from .endings import find_failure, is_known
from .event_normalizer import MessagesEventNormalizer
from .events import BLOCK_START, BLOCK_STOP, DELTA, MESSAGE_DELTA, MESSAGE_START, MESSAGE_STOP, TEXTS
from .padded_template import PaddedTemplate

__all__ = ["MessagesStreamReader"]

State: TypeAlias = Literal["empty", "open"]
Class: TypeAlias = ItemClass | Literal["start", "block", "piece", "delta", "stop", "other"]

_CLASSES: dict[str, Class] = {
    MESSAGE_START: "start",
    BLOCK_START: "block",
    BLOCK_STOP: "block",
    DELTA: "piece",
    MESSAGE_DELTA: "delta",
    MESSAGE_STOP: "stop",
}
_NAMES = {name.encode(): name for name in _CLASSES}
_MOST_TEMPLATES = 4  # of one block: how many are tried


class MessagesStreamReader(StreamReaderBase):
    """`read_stream` of Messages, for every dialect."""

    wrong_event = "something that is not a Messages event"
    place = ("content",)
    _completeness: MessageCompleteness

    def __init__(self, rules: ReplyRules, ctx: Context) -> None:
        completeness = MessageCompleteness()
        super().__init__(rules, ctx, f"{rules.dialect}/messages.event", completeness)
        self._state: State = "empty"
        self._normalizer = MessagesEventNormalizer(load_validator("hub/messages.event"), ctx, completeness)
        self._templates_left = _MOST_TEMPLATES
        self._message_id: Any = None
        self._has_blocks = False

    def _process_body(self, body: Any, raw: bytes | None, data: bytes, name: bytes | None) -> list[Output]:
        if name in _NAMES and isinstance(body, dict) and body.get("type") is None:
            body["type"], raw = _NAMES[name], None
        kind, payload = _classify(data, body, name)
        outputs = _TABLE[self._state, kind](self, payload, raw)
        if kind == "piece":
            self._learn(raw, name, outputs)
        elif kind != "idle":
            self._template, self._templates_left = None, _MOST_TEMPLATES
        return outputs

    def _learn(self, raw: bytes | None, name: bytes | None, outputs: list[Output]) -> None:
        """Make the template of the pieces of a text, which the next ones are likely to match."""
        self._template = None
        if raw is None or self._validates_natively or len(outputs) != 1 or not self._templates_left:
            return
        chunk = outputs[0]
        if not isinstance(chunk, Chunk) or not isinstance(delta := chunk.body.get("delta"), dict):
            return
        key = TEXTS.get(str(delta.get("type")))
        if key is None or key == "signature" or len(delta) != 2:
            return
        if not self._normalizes or self._normalizer.is_open(chunk.body):
            self._templates_left -= 1
            begin = b"event: %b\ndata: " % name if name else b"data: "
            self._template = PaddedTemplate.learn(chunk.body, raw, chunk.raw is not None, ("delta", key), begin)

    # Handlers

    def _handle_event(self, body: JsonObject, raw: bytes | None, take: _Take) -> list[Output]:
        if self._validates_natively and not self._native.accepts(body):
            self._record_violation(body)
        if not self._normalizes:
            self._state = "open"
            return [Chunk(body, raw)]
        opening: list[Output] = []
        if self._state == "empty" and take is not MessagesEventNormalizer.start:
            opening = [*self._normalizer.make_start()]
        self._state = "open"
        return [*opening, *take(self._normalizer, body, raw)]

    def _handle_start(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        message = body.get("message")
        self._add_counts(message.get("usage") if isinstance(message, dict) else None)
        self._message_id = _read_id(body)
        return self._handle_event(body, raw, MessagesEventNormalizer.start)

    def _handle_another_start(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        """Leave out a repeated beginning. The beginning of another message says that this one was cut off: some
        gateways ask again then, and append the second answer. Raises Fault."""
        is_other = self._message_id is not None and _read_id(body) not in (None, self._message_id)
        if is_other and self._has_blocks and not self._completeness.is_complete:
            text = "the provider's stream began another message before the answer was complete"
            raise Fault("upstream_invalid_response", text, code="upstream_truncated")
        return self._handle_event(body, raw, lambda normalizer, *_: normalizer.skip_start())

    def _handle_block(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        self._has_blocks = True
        return self._handle_event(body, raw, MessagesEventNormalizer.add_block_event)

    def _handle_delta(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        self._add_counts(body.get("usage"))
        if not self._normalizes:
            self._track_stop_reason(body)
        return self._handle_event(body, raw, MessagesEventNormalizer.add_delta)

    def _handle_stop(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        last = self._handle_event(body, raw, MessagesEventNormalizer.stop) if self._completeness.is_complete else []
        return last + self._conclude()

    def _handle_other(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        return self._handle_event(body, raw, MessagesEventNormalizer.pass_on)

    def _add_counts(self, usage: Any) -> None:
        """Keep the counts of an event, which replace those of earlier ones: some clients get no event with them."""
        if counts := select_counts(usage):
            self.usage = {**(self.usage or {}), **counts}

    def _track_stop_reason(self, body: JsonObject) -> None:
        """Note the stop reason, for policies that leave events unchanged. Raises Fault if it reports a failure."""
        delta = body.get("delta")
        native = delta.get("stop_reason") if isinstance(delta, dict) else None
        if not has_finished(native):
            return
        failure = find_failure(native)
        if failure is not None:
            raise failure
        self._ctx.receipt.violations += not is_known(native)
        self._completeness.finish()

    def _conclude(self, cut: Fault | None = None) -> list[Output]:
        if not self._normalizes or not self._completeness.is_complete:
            return super()._conclude(cut)
        try:
            chunks = self._normalizer.finish()
        except Fault as fault:
            return self._fail(fault)
        return [*chunks, *super()._conclude(cut)]


def _read_id(start: JsonObject) -> Any:
    message = start.get("message")
    return message.get("id") if isinstance(message, dict) else None


def _classify(data: bytes, body: Any, name: bytes | None) -> tuple[Class, Any]:
    """The class of an item, and the argument of its handler; `body` and `name` are those of `classify_item`."""
    word = body.get("type") if isinstance(body, dict) else None
    known = _CLASSES.get(word) if isinstance(word, str) else None
    if known is not None:
        return known, body
    kind, payload = classify_item(data, body, name)
    if kind is not None:
        return kind, payload
    return ("other", body) if isinstance(word, str) and word else ("broken", data)


_Take: TypeAlias = Callable[[MessagesEventNormalizer, JsonObject, bytes | None], list[Chunk]]
_Handler: TypeAlias = Callable[[MessagesStreamReader, Any, bytes | None], list[Output]]

_EMPTY: dict[Class, _Handler] = {
    "start": MessagesStreamReader._handle_start,
    "block": MessagesStreamReader._handle_block,
    "piece": MessagesStreamReader._handle_block,
    "delta": MessagesStreamReader._handle_delta,
    "stop": MessagesStreamReader._handle_stop,
    "other": MessagesStreamReader._handle_other,
    "idle": MessagesStreamReader._handle_idle,
    "done": MessagesStreamReader._handle_done,
    "error": MessagesStreamReader._handle_error,
    "text": MessagesStreamReader._handle_text,
    "broken": MessagesStreamReader._handle_broken,
}
_OPEN: dict[Class, _Handler] = {**_EMPTY, "start": MessagesStreamReader._handle_another_start}

_TABLE: dict[tuple[State, Class], _Handler] = {
    **{("empty", kind): handler for kind, handler in _EMPTY.items()},
    **{("open", kind): handler for kind, handler in _OPEN.items()},
}
