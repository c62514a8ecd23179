"""The outputs of a stream: chunks in hub form, single or coalesced, then exactly one End or Fault."""

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
    "StreamReader",
    "StreamTranslator",
    "StreamWriter",
    "count_events",
    "expand",
]

_MARK = uuid4().hex  # made here, so that no chunk has it


@dataclass(slots=True)
class Chunk:
    """One event in hub form. `raw` is its JSON text as received, if reading it changed nothing."""

    body: JsonObject
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is complete."""


class DeltaRun:
    """Coalesced deltas: chunks that came together and differ in nothing but their texts.

    `body` is one of the chunks, and `place` the path of its text; all runs of one kind in a stream share the very same
    `body`. `texts` are raw JSON fragments: what is between the quotes of each string. `data` are the chunks as
    server-sent events, if reading them changed nothing.
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
        """The texts as this project encodes JSON strings, however the provider escaped them."""
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


Output: TypeAlias = Chunk | DeltaRun | End | Fault


def count_events(output: Output) -> int:
    """How many of a stream's events the output is; a terminal is none."""
    return len(output.texts) if isinstance(output, DeltaRun) else int(isinstance(output, Chunk))


def expand(outputs: Iterable[Output]) -> list[Chunk | End | Fault]:
    """The outputs with coalesced deltas as single chunks."""
    return [one for output in outputs for one in (output.chunks() if isinstance(output, DeltaRun) else [output])]


class StreamReader(Protocol):
    """`read_stream`: a provider's bytes in, hub outputs and one terminal out. It alone decides completeness."""

    @property
    def has_ended(self) -> bool:
        """Whether an End or a Fault was returned; nothing is returned after it."""

    def receive(self, data: bytes) -> list[Output]:
        """The outputs that these bytes complete, however the stream is cut into reads."""

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The outputs at the end of the bytes; `cut` says how they ended, if not cleanly."""


class StreamWriter(Protocol):
    """`write_stream`: hub outputs in, the client dialect's bytes out. Total: the first terminal closes it, what comes
    after is dropped, its events counted in `dropped`."""

    content_type: str
    dropped: int
    aborts: bool
    """True once the connection must be broken off instead of closed cleanly."""
    comments: bool
    """True if the dialect's clients skip comments between the events."""

    def write(self, output: Output) -> bytes:
        """The bytes of one output in the client's dialect, as server-sent events."""


class StreamTranslator(Protocol):
    """Outputs of the provider's protocol in, those of the client's out. Total: its first terminal is the last output,
    what comes after is dropped, its events counted in `dropped`."""

    dropped: int

    def feed(self, output: Output) -> list[Output]:
        """The outputs in the client's protocol for one in the provider's."""
