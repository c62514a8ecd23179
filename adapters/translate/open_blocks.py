"""The open content block of a Messages stream, which writes its events."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.messages.events import (
    CITATIONS,
    SIGNATURE,
    TEXTS,
    THINKING,
    block_delta,
    block_start,
    block_stop,
)
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun, Output

__all__ = ["OpenBlock"]


class OpenBlock:
    """A content block whose texts are deltas of the type `kind`. `has_text`: one of them has come; `is_done`: it takes
    no more."""

    __slots__ = ("_event", "_place", "has_text", "index", "is_done", "kind")

    def __init__(self, block: JsonObject, kind: str, index: int, out: list[Output]) -> None:
        self.kind = kind
        self.index = index
        self.has_text = False
        self.is_done = False
        self._place: Path = ("delta", TEXTS[kind])
        self._event = block_delta(index, kind, "")  # the same object for all runs
        out.append(Chunk(block_start(index, block)))

    def write(self, text: str, out: list[Output]) -> None:
        """Append the event of a piece of text."""
        self.has_text = True
        out.append(Chunk(block_delta(self.index, self.kind, text)))

    def write_run(self, run: DeltaRun) -> list[Output]:
        """The run of texts as one run of events. Empty texts are left out."""
        texts = run.texts if all(run.texts) else [text for text in run.texts if text]
        self.has_text = self.has_text or bool(texts)
        return [DeltaRun(self._event, self._place, texts)] if texts else []

    def sign(self, signature: str, out: list[Output]) -> None:
        """Append the event of the signature, after which no text comes."""
        self.is_done = True
        out.append(Chunk(block_delta(self.index, SIGNATURE, signature)))

    def cite(self, citation: JsonObject, out: list[Output]) -> None:
        """Append the event of a citation of the text."""
        out.append(Chunk(block_delta(self.index, CITATIONS, citation)))

    def close(self, out: list[Output]) -> None:
        """Append the event that closes the block. Thinking without signature gets an empty one: clients that see none
        in a stream leave the thinking out of the next request."""
        if self.kind == THINKING and not self.is_done:
            self.sign("", out)
        out.append(Chunk(block_stop(self.index)))
