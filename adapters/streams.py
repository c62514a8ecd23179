"""What passes through a stream: chunks in hub form, then exactly one end or fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .call import JsonObject
from .faults import Fault
from .sse import Item

__all__ = ["Chunk", "End", "Output", "Run", "StreamReader", "StreamWriter", "each"]


@dataclass(slots=True)
class Chunk:
    """One event in hub form. `raw` is its JSON text as received, where reading it changed nothing."""

    body: JsonObject
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is complete."""


Output: TypeAlias = Chunk | End | Fault


@dataclass(slots=True)
class Run:
    """Chunks that came together and differ in nothing but their texts: `count` of them, `size` bytes of the read.

    `data` is the events that tell them in hub form, `chunks` makes them one by one.
    """

    data: bytes
    size: int
    count: int
    chunks: Callable[[], list[Chunk]]


def each(outputs: Iterable[Output | Run]) -> Iterator[Output]:
    """The outputs one by one."""
    for output in outputs:
        if isinstance(output, Run):
            yield from output.chunks()
        else:
            yield output


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
