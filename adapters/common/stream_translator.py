"""What the translators of all protocols' streams share: one terminal closes them, and deltas may come many at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dragoman.adapters.call import JsonObject
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, count_events

__all__ = ["StreamTranslatorBase"]


class StreamTranslatorBase(ABC):
    """A StreamTranslator. A subclass translates single chunks; one that can translate coalesced deltas faster than
    chunk by chunk overrides `_delta_run`. Which terminal ends the stream, the reader has decided: an End stays an End,
    a Fault that Fault."""

    def __init__(self) -> None:
        self.dropped = 0
        self._ended = False

    def feed(self, output: Output) -> list[Output]:
        """The outputs in the client's protocol; none once a terminal was returned."""
        if self._ended:
            self.dropped += count_events(output)
            return []
        if isinstance(output, DeltaRun):
            return self._delta_run(output)
        if isinstance(output, Chunk):
            return self._chunk(output.body)
        self._ended = True
        return self._complete(output) if isinstance(output, End) else [output]

    @abstractmethod
    def _chunk(self, body: JsonObject) -> list[Output]: ...

    def _delta_run(self, run: DeltaRun) -> list[Output]:
        return [made for chunk in run.chunks() for made in self._chunk(chunk.body)]

    def _complete(self, end: End) -> list[Output]:
        """The outputs at the end of a complete stream."""
        return [end]
