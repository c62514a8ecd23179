"""The base class of stream writers: the first terminal closes a writer, and deltas may arrive coalesced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, count_events

__all__ = ["COMMENT", "StreamWriterBase", "encode_event_head"]

COMMENT = b": ping\n\n"
"""A comment of a server-sent event stream."""


class StreamWriterBase(ABC):
    """A StreamWriter. A subclass encodes single chunks and the two terminals. If it can encode coalesced deltas faster
    than chunk by chunk, it overrides `_encode_run`."""

    content_type = "text/event-stream"

    def __init__(self, *, ping: bytes = b"") -> None:
        self.ping = ping
        self.dropped = 0
        self.aborts = False
        self._closed = False

    def write(self, output: Output) -> bytes:
        """The bytes of one output; none once a terminal was written."""
        if self._closed:
            self.dropped += count_events(output)
            return b""
        if isinstance(output, DeltaRun):
            return self._encode_run(output)
        if isinstance(output, Chunk):
            return self._encode_chunk(output)
        self._closed = True
        return self._encode_end() if isinstance(output, End) else self._encode_fault(output)

    @abstractmethod
    def _encode_chunk(self, chunk: Chunk) -> bytes: ...

    def _encode_run(self, run: DeltaRun) -> bytes:
        return b"".join(map(self._encode_chunk, run.chunks()))

    @abstractmethod
    def _encode_end(self) -> bytes: ...

    @abstractmethod
    def _encode_fault(self, fault: Fault) -> bytes: ...


@lru_cache(maxsize=256)
def encode_event_head(name: str) -> bytes:
    """The lines before the data of a named event. White space is removed from the name."""
    return f"event: {''.join(name.split())}\ndata: ".encode()
