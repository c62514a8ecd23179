"""Reading a provider's chat stream: bytes in, hub chunks out, and exactly one terminal.

Theory of operation. Each item that the framer finds is first *classified*; the table `_HANDLERS` gives what happens:

    chunk   a JSON object with choices                      its hub form
    note    an object with no choices in it                 kept: its usage for the end, the rest for the next chunk
    done    `[DONE]`                                        the terminal that `completeness` decides
    error   an object that reports an error                 a fault, as are the next two
    text    a bare line that is not JSON
    broken  anything else

While some choice has begun and not finished, a chunk of text may be told by its bytes (`chunk_template`). Nothing
follows a terminal.

Mending happens chunk by chunk (policy `replies: repair` and `strict`): one id, one created, one role per choice, tool
calls by index, a finish reason after what was said and not beside it, usage in an event of its own and only where the
client asked for it. A chunk that needed no mending keeps its original bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import ChoiceCompleteness
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.stream_reader import StreamReaderBase
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Item
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import judge

from .chunk_normalizer import ChunkMender
from .normalizer import Mender
from .reply import reports_error

__all__ = ["ChatReader"]

Class: TypeAlias = Literal["chunk", "note", "done", "error", "text", "broken"]

_DONE = b"[DONE]"


class ChatReader(StreamReaderBase):
    """`read_stream` of chat, for every dialect: see the module's docstring. A subclass reads another protocol whose
    chunks have choices: `mender` knows what is in them."""

    wrong_event = "a stream event that is not a JSON object"
    mender: ClassVar[type[Mender]] = ChunkMender

    def __init__(self, reading: Reading, ctx: Context) -> None:
        completeness = ChoiceCompleteness(ctx)
        super().__init__(reading, ctx, f"{reading.dialect}/{self.mender.protocol}.event", completeness)
        self._mender = self.mender(reading, ctx, completeness)
        self._hub = judge(f"hub/{self.mender.protocol}.event")

    def _item(self, item: Item) -> list[Output]:
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

    def _chunk(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        if self._judges_natively and not self._native.ok(body):
            self._violated(body)
        mender, mends = self._mender, self._mends
        same = mender.mend(body) if mends else mender.watch(body)
        is_open = not self._completeness.is_complete
        if mends and not self._hub.ok(body):
            same = mender.repair(body)
        elif raw is not None and mends and not self._judges_natively and is_open:
            mender.remember(body, raw, same)
        self._template = mender.pattern if is_open else None
        ending = mender.ending(body) if mends else None
        if ending is not None:
            return [Chunk(body), Chunk(ending)]
        return [Chunk(body, raw if same else None)]

    def _note(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        """An event without choices: usage, or a vendor's remarks, which travel on with the next chunk."""
        if not self._mends:
            return [Chunk(body, raw)]
        self._mender.keep(body)
        self._template = self._mender.pattern if self._template is not None else None
        return []

    def _conclude(self, cut: Fault | None = None) -> list[Output]:
        outputs = super()._conclude(cut)
        last = self._mender.last() if self._mends and isinstance(outputs[0], End) else None
        return [Chunk(last), *outputs] if last else outputs


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

_HANDLERS: dict[Class, _Handler] = {
    "chunk": ChatReader._chunk,
    "note": ChatReader._note,
    "done": ChatReader._done,
    "error": ChatReader._error,
    "text": ChatReader._text,
    "broken": ChatReader._broken,
}
