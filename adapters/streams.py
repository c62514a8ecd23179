"""What passes through a stream: chunks in hub form, then exactly one end or fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import uuid4

import orjson

from .call import JsonObject
from .edits import replace
from .faults import Fault
from .paths import Path
from .pieces import decoded
from .sse import Item

__all__ = ["Chunk", "End", "Output", "Run", "StreamReader", "StreamTranslator", "StreamWriter"]

_MARK = uuid4().hex  # made here, so that no chunk has it


@dataclass(slots=True)
class Chunk:
    """One event in hub form. `raw` is its JSON text as received, where reading it changed nothing."""

    body: JsonObject
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is complete."""


Output: TypeAlias = Chunk | End | Fault


class Run:
    """Chunks that came together and are alike but for their texts.

    `body` is one of them, and `place` where its text stands; runs of the same stream have the very same body. `texts`
    are the insides of JSON strings. `size` is how many bytes of a read they took, and `data` those bytes, where they
    are the chunks as events in hub form.
    """

    __slots__ = ("body", "data", "place", "size", "texts")

    def __init__(
        self, body: JsonObject, place: Path, texts: list[bytes], size: int = 0, data: bytes | None = None
    ) -> None:
        self.body = body
        self.place = place
        self.texts = texts
        self.size = size
        self.data = data

    def chunks(self) -> list[Chunk]:
        """One by one."""
        return [Chunk(self._with(decoded(text))) for text in self.texts]

    def rewritten(self) -> list[bytes]:
        """The texts as they are written in a text that is made here, however they came."""
        if b"\\" not in b"".join(self.texts):
            return self.texts
        return [orjson.dumps(decoded(text))[1:-1] for text in self.texts]

    def _with(self, text: str) -> JsonObject:
        body = self.body.copy()
        replace(body, self.place, text)
        return body

    def around(self) -> tuple[bytes, bytes]:
        """The JSON text of a chunk, cut where its text stands. The same for every run with this body."""
        before, _, after = orjson.dumps(self._with(_MARK)).partition(_MARK.encode())
        return before, after


class StreamReader(Protocol):
    """`read_stream`: a provider's events in, hub chunks and one terminal out. It alone decides completeness."""

    @property
    def ended(self) -> bool:
        """True once an End or a Fault has come out; nothing comes out after it."""

    def feed(self, item: Item) -> list[Output]:
        """Take one item that the SSE framer found."""

    def run(self, data: bytes, at: int) -> Run | None:
        """The short way: what begins at this place of the bytes, where an event begins, if it can be told at a glance.
        Bytes that were taken so are not fed."""

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The bytes ended; `cut` tells how, where they did not end cleanly."""


class StreamWriter(Protocol):
    """`write_stream`: hub chunks in, the client dialect's bytes out. Total: the first terminal closes it, what comes
    after is dropped and counted in `dropped`."""

    content_type: str
    dropped: int
    aborts: bool
    """True once the connection must be broken off instead of closed cleanly."""
    comments: bool = False
    """True where the dialect's clients pass over comments between the events."""

    def write(self, output: Output) -> bytes: ...

    def write_run(self, run: Run) -> bytes:
        """What `write` gives for its chunks."""
        return b"".join(map(self.write, run.chunks()))


class StreamTranslator(Protocol):
    """Outputs of the provider's protocol in, those of the client's out; its terminal is the last."""

    def feed(self, output: Output) -> list[Output]: ...

    def feed_run(self, run: Run) -> Sequence[Output | Run]:
        """What `feed` gives for its chunks."""
        return [made for chunk in run.chunks() for made in self.feed(chunk)]
