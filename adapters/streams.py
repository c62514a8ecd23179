"""The outputs of a stream, and the interfaces of its stages.

A stream is a series of chunks in hub form, single or coalesced, followed by exactly one End or Fault: its terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import uuid4

import orjson

from .call import JsonObject
from .edits import replace
from .faults import Fault
from .paths import Path
from .text_buffer import decode_fragment

__all__ = [
    "Chunk",
    "DeltaRun",
    "End",
    "Output",
    "PartlyRead",
    "StreamReader",
    "StreamTranslator",
    "StreamWriter",
    "count_events",
    "expand",
]

_MARK = uuid4().hex  # random, so that no chunk contains it


@dataclass(slots=True)
class Chunk:
    """One event in hub form. `raw` is its JSON text as received, if reading it changed nothing."""

    body: JsonObject
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is complete. `usage` is an estimate of what it took, if dragoman has ended it before the provider said
    that."""

    usage: JsonObject | None = None


class DeltaRun:
    """Coalesced deltas: chunks that arrived together and differ only in one text.

    `body` is one of the chunks, and `place` the path of its text; all runs of one kind in a stream share the same
    object `body`. `texts` are raw JSON fragments: the content of each JSON string, between its quotes. `data` are the
    chunks as server-sent events, if reading them changed nothing.
    """

    __slots__ = ("body", "data", "place", "texts")

    def __init__(self, body: JsonObject, place: Path, texts: list[bytes], data: bytes | None = None) -> None:
        self.body = body
        self.place = place
        self.texts = texts
        self.data = data

    def chunks(self) -> list[Chunk]:
        """The chunks, one by one."""
        return [Chunk(self._with_text(decode_fragment(text))) for text in self.texts]

    def encoded_texts(self) -> list[bytes]:
        """Return the texts as dragoman escapes them in JSON strings, however the provider escaped them."""
        if b"\\" not in b"".join(self.texts):
            return self.texts
        return [orjson.dumps(decode_fragment(text))[1:-1] for text in self.texts]

    def frame(self) -> tuple[bytes, bytes]:
        """The JSON text of a chunk before its text and after it. The same for every run with this body."""
        before, _, after = orjson.dumps(self._with_text(_MARK)).partition(_MARK.encode())
        return before, after

    def _with_text(self, text: str) -> JsonObject:
        body = self.body.copy()
        replace(body, self.place, text)
        return body


class PartlyRead(Exception):
    """A stream cannot be read on, because of `error`. `outputs` are those of its bytes before that."""

    def __init__(self, outputs: list[Output], error: Exception) -> None:
        super().__init__()
        self.outputs = outputs
        self.error = error


Output: TypeAlias = Chunk | DeltaRun | End | Fault


def count_events(output: Output) -> int:
    """Return how many events of the stream the output holds; a terminal holds none."""
    return len(output.texts) if isinstance(output, DeltaRun) else int(isinstance(output, Chunk))


def expand(outputs: Iterable[Output]) -> list[Chunk | End | Fault]:
    """Replace coalesced deltas by single chunks."""
    return [one for output in outputs for one in (output.chunks() if isinstance(output, DeltaRun) else [output])]


class StreamReader(Protocol):
    """Made by `read_stream`: reads a provider's bytes into outputs in hub form and one terminal.

    Only the reader decides whether the stream is complete.
    """

    @property
    def usage(self) -> JsonObject | None:
        """The token counts of a stream that has ended, in canonical form; None if the provider has named none."""

    @property
    def has_ended(self) -> bool:
        """Whether the terminal was returned; nothing is returned after it."""

    def receive(self, data: bytes) -> list[Output]:
        """Return the outputs that these bytes complete. They do not depend on how the stream is cut into reads: if an
        unexpected error follows some of them, PartlyRead is raised."""

    def close(self, cut: Fault | None = None) -> list[Output]:
        """Return the last outputs, at the end of the bytes. `cut` is the fault that cut them off, or None."""


class StreamWriter(Protocol):
    """Made by `write_stream`: writes outputs in hub form as bytes of the client's dialect. It never raises.

    The first terminal closes it. Outputs after that are dropped; `dropped` counts their events.
    """

    content_type: str
    dropped: int
    aborts: bool
    """True if the connection must be aborted now instead of being closed cleanly."""
    ping: bytes
    """What the dialect's clients skip between the events, to be sent when a stream is silent; empty if nothing is."""

    def write(self, output: Output) -> bytes:
        """Return the server-sent events of one output in the client's dialect."""


class StreamTranslator(Protocol):
    """Translates outputs of the provider's protocol into outputs of the client's. It never raises.

    The first terminal is the last output. Outputs after that are dropped; `dropped` counts their events.
    """

    dropped: int

    def feed(self, output: Output) -> list[Output]:
        """Return the outputs in the client's protocol for one output in the provider's."""
