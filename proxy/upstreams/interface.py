"""The interface of an upstream: it sends a call, and returns the reply as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dragoman.adapters.call import Call, Headers
from dragoman.proxy.telemetry.recording import RequestRecorder

__all__ = ["Upstream", "UpstreamResponse"]


class UpstreamResponse(Protocol):
    """A reply whose status and headers have arrived. Header names are case-insensitive. The body is still
    compressed."""

    status: int
    headers: Headers
    sent_secrets: tuple[bytes, ...]
    """The credentials that the call carried (`telemetry/sent_secrets.py`)."""

    async def read_chunk(self) -> bytes:
        """Read the next bytes as they arrive; empty at the end. Raises Fault."""

    def take_whole(self) -> bytes | None:
        """The whole body if it has arrived; None if not, or if it is easier to read."""
        return None

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        """Give the next bytes to `take` as soon as they arrive, while the caller sleeps. Returns when `take` returns
        False, or when `read_chunk` has to say what follows; at once if the upstream cannot do this."""

    @property
    def is_at_end(self) -> bool:
        """True if it is already known that no more bytes follow."""

    def finish(self) -> None:
        """Stop reading. The connection returns to the pool if the body ends at once, and is closed otherwise."""

    def close(self) -> None:
        """Close the connection unless the body was read to its end. Calling it again does nothing."""


class Upstream(Protocol):
    async def send(
        self,
        call: Call,
        *,
        stream: bool,
        forwarded: Headers,
        recorder: RequestRecorder | None = None,
        written: bytes | None = None,
    ) -> UpstreamResponse:
        """Send a call. `forwarded` are headers of the client; `recorder` gets what is sent; `written` is the call's
        body as JSON, if it is written already. Raises Fault."""

    async def close(self) -> None:
        """Close every connection."""
