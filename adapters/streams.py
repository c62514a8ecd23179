"""What passes through a stream: chunks in hub form, then exactly one end or fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .call import JsonObject
from .faults import Fault
from .sse import Item

__all__ = ["Chunk", "End", "Output", "StreamReader", "StreamWriter"]


@dataclass(slots=True)
class Chunk:
    """One event in hub form. `raw` is its JSON text as received, where reading it changed nothing."""

    body: JsonObject
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The stream is complete."""


Output: TypeAlias = Chunk | End | Fault


class StreamReader(Protocol):
    """`read_stream`: a provider's events in, hub chunks and one terminal out. It alone decides completeness."""

    @property
    def ended(self) -> bool:
        """True once an End or a Fault has come out; nothing comes out after it."""

    def feed(self, item: Item) -> list[Output]:
        """Take one item that the SSE framer found."""

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
