"""One request and what came back, as bytes: what a transport returns, a recording keeps and a report shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

__all__ = ["LEFT", "Answer", "Asked", "Chunk", "Exchange", "Leave", "Transport", "Unreachable"]

Leave: TypeAlias = Literal["", "asked", "begun"]

LEFT = 499
"""The status of an exchange whose client left before it had one: nginx's word for it."""


class Unreachable(Exception):
    """No reply could be had: no connection, no head in time, or no recording of the request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `url` is whole; `path` is its part after the base address, query included. `leave` says when the
    client goes without waiting for the end: once the provider behind a proxy is asked, or once the reply has begun,
    too; `until` waits for the provider to be asked."""

    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    leave: Leave = ""
    until: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as they arrived, `at` seconds after the request was sent."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """`broken` says how the body ended where it did not end in order. Header names are in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[Chunk, ...] = ()
    broken: str | None = None

    @property
    def body(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Exchange:
    asked: Asked
    answer: Answer
    seconds: float = field(default=0.0)


class Transport(Protocol):
    async def send(self, asked: Asked) -> Answer:
        """Raises Unreachable."""

    async def close(self) -> None: ...
