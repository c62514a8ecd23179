"""One request and its response, as bytes: a transport returns them, a recording stores them, a report shows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

__all__ = [
    "CLIENT_CLOSED_REQUEST",
    "NO_END",
    "TOO_LONG",
    "BusyError",
    "Chunk",
    "DroppedError",
    "Exchange",
    "LeavePoint",
    "Request",
    "Response",
    "SlowReplyError",
    "Transport",
    "UnreachableError",
]

LeavePoint: TypeAlias = Literal["", "asked", "begun"]

NO_END = "no end within"
"""How the text begins that says that a body ran into the timeout."""

TOO_LONG = "more than"
"""How the text begins that says that a body ran into the limit of its size."""

CLIENT_CLOSED_REQUEST = 499
"""The status of an exchange whose client leaves before a status arrives, as nginx logs it."""


class UnreachableError(Exception):
    """There is no response: no connection, no response head in time, or no recording of the request."""


class SlowReplyError(UnreachableError):
    """No complete response arrived in time. `exchange` has what arrived, None if nothing did."""

    def __init__(self, message: str, exchange: Exchange | None = None) -> None:
        super().__init__(message)
        self.exchange = exchange


class DroppedError(UnreachableError):
    """The server took the request and closed the connection without a response."""


class BusyError(UnreachableError):
    """The server is still busy after all retries. `exchange` is the last one."""

    def __init__(self, message: str, exchange: Exchange) -> None:
        super().__init__(message)
        self.exchange = exchange


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `url` is complete; `path` is its part after the base URL, with the query. `leave` says when the client
    disconnects before the end of the response: "asked", once the proxy has called its provider, or "begun", once the
    response has begun as well. `wait_for_upstream` waits until the proxy has called its provider. `timeout` is the
    timeout of this request in seconds, if it is shorter than the transport's."""

    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    leave: LeavePoint = ""
    wait_for_upstream: Callable[[], Awaitable[None]] | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as they arrived, `at` seconds after the request was sent."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Header names are in lower case. `broken` says how an incomplete body ended, None if it is
    complete."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[Chunk, ...] = ()
    broken: str | None = None

    @property
    def body(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def has_timed_out(self) -> bool:
        """Whether the body ran into the timeout."""
        return self.broken is not None and self.broken.startswith(NO_END)

    @property
    def has_no_end(self) -> bool:
        """Whether the body ran into the timeout, or into the limit of its size."""
        return self.broken is not None and self.broken.startswith((NO_END, TOO_LONG))

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, its response, and how many seconds both took."""

    request: Request
    response: Response
    seconds: float = field(default=0.0)


class Transport(Protocol):
    """Sends requests."""

    async def send(self, request: Request) -> Response:
        """Send one request. Raises UnreachableError."""

    async def close(self) -> None: ...
