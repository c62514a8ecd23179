"""The base class of stream translators: the first terminal closes a translator, and deltas may arrive coalesced."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dragoman.adapters.call import JsonObject
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, count_events

__all__ = ["StreamTranslatorBase"]


class StreamTranslatorBase(ABC):
    """A StreamTranslator. A subclass translates single chunks. If it can translate coalesced deltas faster than chunk
    by chunk, it overrides `_translate_run`. The reader has decided which terminal ends the stream: the translator
    passes an End or a Fault on."""

    def __init__(self) -> None:
        self.dropped = 0
        self._has_ended = False

    def feed(self, output: Output) -> list[Output]:
        """The outputs in the client's protocol; none once a terminal was returned."""
        if self._has_ended:
            self.dropped += count_events(output)
            return []
        if isinstance(output, DeltaRun):
            return self._translate_run(output)
        if isinstance(output, Chunk):
            return self._translate_chunk(output.body)
        self._has_ended = True
        return self._translate_end(output) if isinstance(output, End) else [output]

    @abstractmethod
    def _translate_chunk(self, body: JsonObject) -> list[Output]: ...

    def _translate_run(self, run: DeltaRun) -> list[Output]:
        return [made for chunk in run.chunks() for made in self._translate_chunk(chunk.body)]

    def _translate_end(self, end: End) -> list[Output]:
        """The outputs at the end of a complete stream."""
        return [end]
