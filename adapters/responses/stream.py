"""Reads Responses streams: bytes in, hub events and exactly one terminal out.

Theory of operation. The reader first *classifies* each item of the framer:

    opening  response.created, queued or in_progress         done     `[DONE]`
    event    any other event that has a name                 error    an `error` event, an object that reports an error
    last     one of the four that end a response             text     a bare line that is not JSON
    idle     a heartbeat                                     broken   anything else

`stream_items` decides idle and those on the right.

If an event has no `type`, its `event:` line names it. The table `_TABLE` maps the state and the class to a handler,
which returns the outputs. The last event and `[DONE]` are signs of the stream's end: `completeness` decides the
terminal. Nothing follows it.

    empty    the response has not begun; the next event opens it. If that event is no opening, one is made
    open     the response is in progress

Under the policies `repair` and `strict`, events are normalized one by one. An unchanged event keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import ResponseCompleteness
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_changes import StreamChanges
from dragoman.adapters.common.stream_items import ItemClass, classify_item
from dragoman.adapters.common.stream_reader import StreamReaderBase
from dragoman.adapters.common.usage import select_counts
from dragoman.adapters.streams import Chunk, Output
from dragoman.adapters.validation import load_validator

from .event_normalizer import ResponsesEventNormalizer
from .events import BEGINNINGS, TERMINALS

__all__ = ["ResponsesStreamReader"]

_KEEP_ALIVE = frozenset({"type", "sequence_number"})  # its keys

State: TypeAlias = Literal["empty", "open"]
Class: TypeAlias = ItemClass | Literal["opening", "event", "last"]


class ResponsesStreamReader(StreamReaderBase):
    """`read_stream` of Responses, for every dialect."""

    wrong_event = "something that is not a Responses event"
    place = ("output",)
    _completeness: ResponseCompleteness

    def __init__(self, rules: ReplyRules, ctx: Context) -> None:
        super().__init__(rules, ctx, f"{rules.dialect}/responses.event", ResponseCompleteness())
        self._state: State = "empty"
        self._changes = StreamChanges(ctx.receipt)
        self._normalizer = ResponsesEventNormalizer(load_validator("hub/responses.event"), rules, ctx)

    def _process_body(self, body: Any, raw: bytes | None, data: bytes, name: bytes | None) -> list[Output]:
        if raw is not None and self._state == "open" and self._normalizer.accept_repeat(body):
            return [Chunk(body, raw)]
        if name and isinstance(body, dict) and body and body.get("type") is None:
            body["type"], raw = name.decode("utf-8", "replace"), None
        kind, payload = _classify(data, body, name)
        return _TABLE[self._state, kind](self, payload, raw)

    # Handlers

    def _handle_opening(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        self._state = "open"
        return self._handle_event(body, raw)

    def _handle_event(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._validates_natively and not self._native.accepts(body):
            self._record_violation(body)
        if not self._normalizes:
            return [Chunk(body, raw)]
        if self._is_foreign(body):
            return []
        return [*self._normalizer.normalize(body, raw, remember=not self._validates_natively)]

    def _handle_last(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        response = body.get("response")
        self.usage = select_counts(response.get("usage") if isinstance(response, dict) else None) or None
        outputs = self._handle_event(body, raw)
        self._completeness.finish()
        return outputs + self._conclude()

    def _handle_unopened(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._normalizes and self._is_foreign(body):
            return []
        opening = self._normalizer.make_opening(body) if self._normalizes else []
        self._state = "open"
        return [*opening, *(self._handle_last if body["type"] in TERMINALS else self._handle_event)(body, raw)]

    def _is_foreign(self, body: JsonObject) -> bool:
        """Whether the event is none of a response: a keep-alive, or a vendor's own, which is a loss."""
        if body["type"].startswith("response."):
            return False
        if body.keys() - _KEEP_ALIVE:
            self._changes.record_drop(("output",), "events that are not of a response are left out")
        return True


def _classify(data: bytes, body: Any, name: bytes | None) -> tuple[Class, Any]:
    """The class of an item, and the argument of its handler; `body` and `name` are those of `classify_item`."""
    word = body.get("type") if isinstance(body, dict) else None
    if isinstance(word, str) and word.startswith("response."):
        return ("opening" if word in BEGINNINGS else "last" if word in TERMINALS else "event"), body
    kind, payload = classify_item(data, body, name)
    if kind is not None:
        return kind, payload
    return ("event", body) if isinstance(word, str) and word else ("broken", data)


_Handler: TypeAlias = Callable[[ResponsesStreamReader, Any, bytes | None], list[Output]]

_OPEN: dict[Class, _Handler] = {
    "opening": ResponsesStreamReader._handle_opening,
    "event": ResponsesStreamReader._handle_event,
    "last": ResponsesStreamReader._handle_last,
    "idle": ResponsesStreamReader._handle_idle,
    "done": ResponsesStreamReader._handle_done,
    "error": ResponsesStreamReader._handle_error,
    "text": ResponsesStreamReader._handle_text,
    "broken": ResponsesStreamReader._handle_broken,
}
_EMPTY: dict[Class, _Handler] = {
    **_OPEN,
    "event": ResponsesStreamReader._handle_unopened,
    "last": ResponsesStreamReader._handle_unopened,
}

_TABLE: dict[tuple[State, Class], _Handler] = {
    **{("empty", kind): handler for kind, handler in _EMPTY.items()},
    **{("open", kind): handler for kind, handler in _OPEN.items()},
}
