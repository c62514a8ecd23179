"""Writes Messages streams: hub events in, named server-sent events out.

Theory of operation. Clients dispatch on the line `event:`, so each event has one. An event keeps its bytes if reading
it changed nothing.

    End       nothing: `message_stop` was the last event; the writer is closed
    a fault   `event: error` with the dialect's body of an error; the writer is closed

A closed writer drops and counts events.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.stream_writer import StreamWriterBase, encode_event_head
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun

from .events import DELTA

__all__ = ["MessagesStreamWriter"]

_HEAD = encode_event_head(DELTA)
_TAIL = b"\n\n"


class MessagesStreamWriter(StreamWriterBase):
    """`write_stream` of Messages. `error_body` makes the body of an error, as in a reply."""

    def __init__(self, error_body: Callable[[Fault], JsonObject], *, ping: bytes = b"") -> None:
        super().__init__(ping=ping)
        self._error_body = error_body
        self._run_body: JsonObject | None = None  # whose runs are written between `_before` and `_after`
        self._before = self._after = b""

    def _encode_chunk(self, chunk: Chunk) -> bytes:
        return encode_event_head(chunk.body["type"]) + (chunk.raw or orjson.dumps(chunk.body)) + _TAIL

    def _encode_run(self, run: DeltaRun) -> bytes:
        if run.data is not None and run.data.startswith(_HEAD):
            return run.data
        if run.body is not self._run_body:
            self._begin_run(run)
        between = self._after + self._before
        return self._before + between.join(run.encoded_texts()) + self._after

    def _begin_run(self, run: DeltaRun) -> None:
        before, after = run.frame()
        self._before, self._after = encode_event_head(run.body["type"]) + before, after + _TAIL
        self._run_body = run.body

    def _encode_end(self) -> bytes:
        return b""

    def _encode_fault(self, fault: Fault) -> bytes:
        return encode_event_head("error") + orjson.dumps(self._error_body(fault)) + _TAIL
