"""Brings the events of one Messages stream into hub form.

The stream begins with `message_start` and ends with one `message_delta` that has the stop reason, and `message_stop`.
The blocks between them are in order (`block_order`). Usage is cumulative: the last counts are those of the message.

The event with the stop reason is held until the end of the stream, because some servers send it twice, or before the
last pieces, or the counts after it.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.common.completeness import MessageCompleteness
from dragoman.adapters.common.finish_words import has_finished
from dragoman.adapters.common.repair import REPAIRED, repair_event
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.streams import Chunk
from dragoman.adapters.validation import Validator

from .block_order import BlockOrder
from .blocks import BlockNormalizer
from .endings import match_calls, read_stop_reason
from .envelope import make_envelope
from .events import BLOCK_START, message_start, message_stop, new_message
from .usage import normalize_messages_usage

__all__ = ["MessagesEventNormalizer"]

_OPENING = "a stream begins with message_start, once"
_ENDING = "a stream ends with one stop reason and message_stop"
_BEGUN: JsonObject = {"content": [], "stop_reason": None, "stop_sequence": None}
"""What a message has that has just begun."""


class MessagesEventNormalizer:
    """The normalizer of one stream. `hub` validates the events that it returns.

    Methods raise Fault if an event cannot be repaired, or reports a failure.
    """

    def __init__(self, hub: Validator, ctx: Context, completeness: MessageCompleteness) -> None:
        self._hub = hub
        self._ctx = ctx
        self._completeness = completeness
        self._changes = StreamChanges(ctx.receipt)
        self._order = BlockOrder(BlockNormalizer(self._changes, ctx), self._changes)
        self._held: Chunk | None = None
        self._stop: Chunk | None = None

    def start(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """Normalize the first event. Content that it has already becomes blocks."""
        message = _as_object(body.get("message"))
        if not message and body.get("message"):
            self._changes.record_drop(("message",), "the message that begins is no object")
        made = {**new_message("", ""), **message, **make_envelope(message, self._changes, self._ctx), **_BEGUN}
        made["usage"] = normalize_messages_usage(message.get("usage"), ("input_tokens", "output_tokens"), self._changes)
        blocks = _list_blocks(message.get("content"))
        for key in _BEGUN:
            if message.get(key):
                weight: Weight = "form" if key == "content" and blocks is not None else "loss"
                self._changes.record_drop((key,), f"a message begins without {key}", weight)
        if made != message:
            body, raw = {**body, **message_start(made)}, None
        started = self._check([Chunk(body, raw)])
        for index, block in enumerate(blocks or ()):
            started += self.add_block_event({"type": BLOCK_START, "index": index, "content_block": block}, None)
        return started

    def make_start(self) -> list[Chunk]:
        """Make `message_start`, for a provider whose stream begins with another event."""
        self._changes.record_conversion((), _OPENING)
        return self.start({}, None)

    def skip_start(self) -> list[Chunk]:
        """Leave out another beginning of the message."""
        self._changes.record_drop((), _OPENING, "form")
        return []

    def add_block_event(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """Normalize the beginning, a piece or the end of a block."""
        if body["type"] == BLOCK_START and not isinstance(body.get("content_block"), dict):
            repair_event(body, self._hub)  # raises Fault
        return self._check(self._order.add(Chunk(body, raw)))

    def is_open(self, event: JsonObject) -> bool:
        """Whether a piece in hub form belongs to the open block, so that another one may follow it."""
        return self._order.is_open(event)

    def add_delta(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """Normalize a `message_delta`. One with a stop reason is held."""
        delta = {"stop_reason": None, "stop_sequence": None, **_as_object(body.get("delta"))}
        native = delta["stop_reason"]
        if not has_finished(native):
            delta["stop_reason"] = None
        else:
            delta["stop_reason"] = read_stop_reason(native, self._changes, self._ctx)
            self._completeness.finish()
        usage = normalize_messages_usage(body.get("usage"), ("output_tokens",), self._changes)
        if delta != body.get("delta") or usage != body.get("usage"):
            body, raw = {**body, "delta": delta, "usage": usage}, None
        if self._held is not None:
            self._merge(self._held, body)
            return []
        if delta["stop_reason"] is None:
            return self._check([Chunk(body, raw)])
        self._held = Chunk(body, raw)
        return []

    def stop(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """Take `message_stop`, which goes out at the end."""
        self._stop = Chunk(body, raw)
        return []

    def finish(self) -> list[Chunk]:
        """The last events of a complete stream: the ends of open blocks, the stop reason and `message_stop`."""
        made = self._check(self._order.finish())
        held = self._held
        if held is not None:
            delta = held.body["delta"]
            word = match_calls(delta["stop_reason"], self._order.has_calls, self._changes)
            if word != delta["stop_reason"]:
                held = Chunk({**held.body, "delta": {**delta, "stop_reason": word}})
            made += self._check([held])
        if self._stop is None:
            self._changes.record_conversion((), _ENDING)
        return [*made, self._stop or Chunk(message_stop())]

    def pass_on(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """An event of an unknown type, as it is: betas add types."""
        return self._check([Chunk(body, raw)])

    def _merge(self, held: Chunk, body: JsonObject) -> None:
        """Add another `message_delta` to the held one: the first stop reason that says more than `end_turn` counts."""
        before, delta = held.body["delta"], body["delta"]
        word = delta["stop_reason"]
        if word is not None and word != before["stop_reason"]:
            words = f"a message ends with {before['stop_reason']!r} and with {word!r}"
            self._changes.record_conversion(("stop_reason",), f"{words}: the first that says more counts", "loss")
        else:
            self._changes.record_conversion(("stop_reason",), _ENDING)
        counts = before["stop_reason"] != "end_turn" or word is None
        later = {key: value for key, value in delta.items() if value is not None and (key not in before or not counts)}
        usage = {**held.body["usage"], **{key: value for key, value in body["usage"].items() if value is not None}}
        held.body = {**body, **held.body, "delta": {**before, **later}, "usage": usage}
        held.raw = None

    def _check(self, chunks: list[Chunk]) -> list[Chunk]:
        """Repair the events that the hub's schema does not accept."""
        for chunk in chunks:
            if not self._hub.accepts(chunk.body):
                repair_event(chunk.body, self._hub)
                self._changes.record_conversion((), REPAIRED)
                chunk.raw = None
        return chunks


def _list_blocks(content: Any) -> list[JsonObject] | None:
    """The blocks of a message's content; text is one block. None if it is neither text nor blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    is_list = isinstance(content, list) and all(isinstance(one, dict) for one in content)
    return content if is_list else None


def _as_object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
