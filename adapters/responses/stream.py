"""Reading a provider's Responses stream: events in, hub events out, and exactly one terminal.

Theory of operation. A Responses stream is complete when it has said how the response ended: `response.completed`,
`incomplete`, `failed` or `cancelled`. Nothing else proves it, neither `[DONE]` nor a clean end; nothing counts after
it. Each item is first *classified*:

    opening  response.created, queued or in_progress         done     [DONE]
    event    any other event that has a name                 error    an `error` event, an object that reports an error
    last     one of the four that end a response             text     a bare line that is not JSON
    eof      the bytes ended                                 broken   anything else
    cut      the bytes ended, and not cleanly

An event that does not say its type has the name that the `event:` line gives it. What happens is decided by the table
`_TABLE`, from the state and the class; a handler returns what comes out.

    empty    the response has not begun        -> open, ended. What comes without an opening gets one
    open     the response is in progress       -> ended
    ended    a terminal came out; nothing follows

Mending happens event by event (policy `replies: repair` and `strict`). An event that needed none keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reply import reports_error
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.stream_reader import FailingReader
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Item
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import judge

from .events import BEGINNINGS, TERMINALS
from .normalizer import EventMender

__all__ = ["ResponsesReader"]

State: TypeAlias = Literal["empty", "open", "ended"]
Class: TypeAlias = Literal["opening", "event", "last", "done", "error", "text", "broken", "eof", "cut"]

_DONE = b"[DONE]"


class ResponsesReader(FailingReader):
    """`read_stream` of Responses, for every dialect: see the module's docstring."""

    state: State
    wrong_event = "something that is no event of a response"
    truncated = "the response did: no event told how it ended"

    def __init__(self, reading: Reading, ctx: Context) -> None:
        super().__init__(reading, ctx, f"{reading.dialect}/responses.event")
        self._mender = EventMender(judge("hub/responses.event"), reading, ctx)

    def feed(self, item: Item) -> list[Output]:
        """Take one item that the SSE framer found."""
        data, name = (item.data, item.event) if isinstance(item, Event) else (item.text.strip(), None)
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            body = None
        # A payload over several data lines holds line ends, which would tear the event apart when written again.
        raw = data if name is not None and b"\n" not in data else None
        if raw is not None and self.state == "open" and self._mender.repeats(body):
            return [Chunk(body, raw)]
        if name and isinstance(body, dict) and body.get("type") is None:
            body["type"], raw = name.decode("utf-8", "replace"), None
        kind, payload = _classify(data, body, name)
        try:
            return _TABLE[self.state, kind](self, payload, raw)
        except Fault as fault:
            return self._end(fault)

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The bytes ended; `cut` tells how, where they did not end cleanly."""
        return _TABLE[self.state, "cut" if cut else "eof"](self, cut, None)

    # Handlers

    def _opening(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        self.state = "open"
        return self._event(body, raw)

    def _event(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._judges_natively and not self._native.ok(body):
            self._violated(body)
        if not self._mends:
            return [Chunk(body, raw)]
        if not body["type"].startswith("response."):
            return []  # a sign of life
        return [*self._mender.chunks(body, raw, remember=not self._judges_natively)]

    def _last(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        outputs = self._event(body, raw)
        self.state = "ended"
        return [*outputs, End()]

    def _unopened(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._mends and not body["type"].startswith("response."):
            return []
        opening = self._mender.opening(body) if self._mends else []
        self.state = "open"
        return [*opening, *(self._last if body["type"] in TERMINALS else self._event)(body, raw)]


def _classify(data: bytes, body: Any, name: bytes | None) -> tuple[Class, Any]:
    """The class of an item, and what its handler gets. `body` is its parsed JSON, None where it is none; `name` is the
    name that an event came with, None for a bare line."""
    if data == _DONE:
        return "done", None
    if body is None:
        return ("text" if name is None else "broken"), data
    if not isinstance(body, dict):
        return "broken", data
    word = body.get("type")
    if isinstance(word, str) and word.startswith("response."):
        return ("opening" if word in BEGINNINGS else "last" if word in TERMINALS else "event"), body
    if word == "error" or name == b"error" or reports_error(body):
        return "error", body
    return ("event", body) if isinstance(word, str) and word else ("broken", data)


_Handler: TypeAlias = Callable[[ResponsesReader, Any, bytes | None], list[Output]]

_UNFINISHED: dict[Class, _Handler] = {
    "opening": ResponsesReader._opening,
    "event": ResponsesReader._event,
    "last": ResponsesReader._last,
    "done": ResponsesReader._truncated,
    "error": ResponsesReader._error,
    "text": ResponsesReader._text,
    "broken": ResponsesReader._broken,
    "eof": ResponsesReader._truncated,
    "cut": ResponsesReader._cut,
}
_EMPTY: dict[Class, _Handler] = {**_UNFINISHED, "event": ResponsesReader._unopened, "last": ResponsesReader._unopened}
_ENDED: dict[Class, _Handler] = dict.fromkeys(_UNFINISHED, ResponsesReader._nothing)

_TABLE: dict[tuple[State, Class], _Handler] = {
    **{("empty", kind): handler for kind, handler in _EMPTY.items()},
    **{("open", kind): handler for kind, handler in _UNFINISHED.items()},
    **{("ended", kind): handler for kind, handler in _ENDED.items()},
}
