"""What the proxy asks of an upstream: send a call, hand over what comes back, as bytes."""

from __future__ import annotations

from typing import Protocol

from dragoman.adapters.call import Call, Headers

__all__ = ["Upstream", "UpstreamResponse"]


class UpstreamResponse(Protocol):
    """A reply whose status and headers are there. Header names are looked up in any letter case. The bytes come as they
    were sent, still compressed."""

    status: int
    headers: Headers

    async def read_chunk(self) -> bytes:
        """The next bytes as they come, empty at the end. Raises Fault."""

    @property
    def is_at_end(self) -> bool:
        """True if it is known already that no more bytes come."""

    def finish(self) -> None:
        """Nothing more is wanted: give the connection back if the body ends at once, close it otherwise."""

    def close(self) -> None:
        """Break the connection off unless the body was read to its end. May be called twice."""


class Upstream(Protocol):
    async def send(self, call: Call, *, stream: bool, forwarded: Headers) -> UpstreamResponse:
        """Send a call, with the client's headers that may be forwarded. Raises Fault."""

    async def close(self) -> None:
        """Close every connection."""
