"""Writing a chat stream: hub chunks in, data-only server-sent events out."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, Output

__all__ = ["EventWriter"]

_DONE = b"data: [DONE]\n\n"


class EventWriter:
    """`write_stream` of chat. `fault_event` gives the object that tells a client of a failure; no `[DONE]` follows it,
    so that no client takes a broken stream for a whole one."""

    content_type = "text/event-stream"

    def __init__(self, fault_event: Callable[[Fault], JsonObject], *, aborts_on_fault: bool = False) -> None:
        self.dropped = 0
        self.aborts = False
        self._fault_event = fault_event
        self._aborts_on_fault = aborts_on_fault
        self._closed = False

    def write(self, output: Output) -> bytes:
        if self._closed:
            self.dropped += 1
            return b""
        if isinstance(output, Chunk):
            return b"data: " + (output.raw or orjson.dumps(output.body)) + b"\n\n"
        self._closed = True
        if isinstance(output, Fault):
            self.aborts = self._aborts_on_fault
            return b"data: " + orjson.dumps(self._fault_event(output)) + b"\n\n"
        return _DONE
