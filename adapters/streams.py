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
from .sse import Item

__all__ = ["Chunk", "End", "Output", "Run", "StreamReader", "StreamTranslator", "StreamWriter", "Surroundings"]

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
    are the insides of JSON strings, `plain` where none has an escape. `size` is how many bytes of a read they took, and
    `data` those bytes, where they are the chunks as events in hub form.
    """

    __slots__ = ("body", "data", "place", "plain", "size", "texts")

    def __init__(
        self, body: JsonObject, place: Path, texts: list[bytes], size: int = 0, data: bytes | None = None
    ) -> None:
        self.body = body
        self.place = place
        self.texts = texts
        self.size = size
        self.data = data
        self.plain = b"\\" not in b"".join(texts)

    def said(self) -> list[str]:
        """The texts themselves."""
        if self.plain:
            return [text.decode() for text in self.texts]
        said: list[str] = orjson.loads(b'["%b"]' % b'","'.join(self.texts))
        return said

    def chunks(self) -> list[Chunk]:
        """One by one."""
        return [Chunk(self._with(text)) for text in self.said()]

    def _with(self, text: str) -> JsonObject:
        body = self.body.copy()
        replace(body, self.place, text)
        return body


class Surroundings:
    """What is written before and after the texts of runs. It is made anew only where a run has another body."""

    def __init__(self) -> None:
        self._body: JsonObject | None = None
        self._around = b"", b""

    def of(self, run: Run) -> tuple[bytes, bytes]:
        """The JSON text of a chunk, cut where its text stands."""
        if run.body is not self._body:
            body = run.body.copy()
            replace(body, run.place, _MARK)
            before, _, after = orjson.dumps(body).partition(_MARK.encode())
            self._body, self._around = run.body, (before, after)
        return self._around

    @staticmethod
    def texts(run: Run) -> list[bytes]:
        """As they are written in a text that is made here, however they came."""
        return run.texts if run.plain else [orjson.dumps(text)[1:-1] for text in run.said()]


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
