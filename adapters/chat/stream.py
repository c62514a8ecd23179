"""Reading a provider's chat stream: events in, hub chunks out, and exactly one terminal.

Theory of operation. A chat stream is complete when every choice that was seen has a finish reason; `[DONE]` alone
proves nothing, and its absence after the finish reasons does no harm. Whatever else ends a stream is a fault: an end
without finish reasons, an error object, bare text, an event that is not JSON. Each item is first *classified*:

    chunk   a JSON object with choices          done    [DONE]
    note    an object with no choices in it     error   an object that reports an error
    text    a bare line that is not JSON        broken  anything else
    eof     the bytes ended                     cut     the bytes ended, and not cleanly

What happens is decided by the table `_TABLE`, from the state and the class; a handler returns what comes out.

    empty     nothing was seen                  -> open, finished, ended
    open      some choice has no finish reason  -> finished, ended
    finished  every choice seen has one         -> open (a new choice), ended
    ended     a terminal came out; nothing follows

Mending happens chunk by chunk (policy `replies: repair` and `strict`): one id, one created, one role per choice, tool
calls by index, a finish reason after what was said and not beside it, usage in an event of its own and only where the
client asked for it. A chunk that needed no mending keeps its original bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.stream_reader import FailingReader
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Item
from dragoman.adapters.streams import Chunk, End, Output, Run
from dragoman.adapters.validation import judge

from .chunk_normalizer import ChunkMender
from .normalizer import Mender
from .reply import reports_error

__all__ = ["ChatReader"]

State: TypeAlias = Literal["empty", "open", "finished", "ended"]
Class: TypeAlias = Literal["chunk", "note", "done", "error", "text", "broken", "eof", "cut"]

_DONE = b"[DONE]"


class ChatReader(FailingReader):
    """`read_stream` of chat, for every dialect: see the module's docstring. A subclass reads another protocol whose
    chunks have choices: `mender` knows what is in them."""

    state: State
    wrong_event = "a stream event that is not a JSON object"
    truncated = "the answer was complete: no finish reason came"
    mender: ClassVar[type[Mender]] = ChunkMender

    def __init__(self, reading: Reading, ctx: Context) -> None:
        super().__init__(reading, ctx, f"{reading.dialect}/{self.mender.protocol}.event")
        self._mender = self.mender(reading, ctx)
        self._hub = judge(f"hub/{self.mender.protocol}.event")

    def feed(self, item: Item) -> list[Output]:
        """Take one item that the SSE framer found."""
        pattern = self._mender.pattern
        if pattern is not None and self.state == "open" and isinstance(item, Event):
            chunk = pattern.match(item.data)
            if chunk is not None:
                return [chunk]
        is_event = isinstance(item, Event)
        data = item.data if isinstance(item, Event) else item.text.strip()
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            body = None
        # A payload over several data lines holds line ends, which would tear the event apart when written again.
        raw = data if is_event and b"\n" not in data else None
        kind, payload = _classify(data, body, is_event)
        try:
            return _TABLE[self.state, kind](self, payload, raw)
        except Fault as fault:
            return self._end(fault)

    def run(self, data: bytes, at: int) -> Run | None:
        """Chunks of text like the last one."""
        pattern = self._mender.pattern
        return pattern.run(data, at) if pattern is not None and self.state == "open" else None

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The bytes ended; `cut` tells how, where they did not end cleanly."""
        return _TABLE[self.state, "cut" if cut else "eof"](self, cut, None)

    # Handlers

    def _chunk(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._judges_natively and not self._native.ok(body):
            self._violated(body)
        same = self._mender.mend(body) if self._mends else self._mender.watch(body)
        self.state = "finished" if self._mender.finished else "open"
        if self._mends and not self._hub.ok(body):
            same = self._mender.repair(body)
        elif raw is not None and self._mends and not self._judges_natively and self.state == "open":
            self._mender.remember(body, raw, same)
        ending = self._mender.ending(body) if self._mends else None
        if ending is not None:
            return [Chunk(body), Chunk(ending)]
        return [Chunk(body, raw if same else None)]

    def _note(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        """An event without choices: usage, or a vendor's remarks, which travel on with the next chunk."""
        if not self._mends:
            return [Chunk(body, raw)]
        self._mender.keep(body)
        return []

    def _complete(self, *_: Any) -> list[Output]:
        self.state = "ended"
        last = self._mender.last() if self._mends else None
        return [Chunk(last), End()] if last else [End()]


def _classify(data: bytes, body: Any, is_event: bool) -> tuple[Class, Any]:
    """The class of an item, and what its handler gets; `body` is its parsed JSON, None where it is none."""
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


_Handler: TypeAlias = Callable[[ChatReader, Any, bytes | None], list[Output]]

_FAULTS: dict[Class, _Handler] = {
    "error": ChatReader._error,
    "text": ChatReader._text,
    "broken": ChatReader._broken,
}
_UNFINISHED: dict[Class, _Handler] = {
    "chunk": ChatReader._chunk,
    "note": ChatReader._note,
    "done": ChatReader._truncated,
    "eof": ChatReader._truncated,
    "cut": ChatReader._cut,
    **_FAULTS,
}
_FINISHED: dict[Class, _Handler] = {
    "chunk": ChatReader._chunk,
    "note": ChatReader._note,
    "done": ChatReader._complete,
    "eof": ChatReader._complete,
    "cut": ChatReader._complete,
    **_FAULTS,
}
_ENDED: dict[Class, _Handler] = dict.fromkeys(_FINISHED, ChatReader._nothing)

_TABLE: dict[tuple[State, Class], _Handler] = {
    **{("empty", kind): handler for kind, handler in _UNFINISHED.items()},
    **{("open", kind): handler for kind, handler in _UNFINISHED.items()},
    **{("finished", kind): handler for kind, handler in _FINISHED.items()},
    **{("ended", kind): handler for kind, handler in _ENDED.items()},
}
