"""What the proxy asks of an upstream: send a call, hand over what comes back, byte by byte."""

from __future__ import annotations

from typing import Protocol

from dragoman.adapters.call import Call, Headers
from dragoman.proxy.http.deadline import Clock

__all__ = ["REPLY_LIMIT", "Incoming", "Upstream"]

REPLY_LIMIT = 64 * 1024 * 1024
"""Bytes of a reply that is read whole, after decompression."""


class Incoming(Protocol):
    """A reply whose status and headers are there. Header names are looked up in any letter case."""

    status: int
    headers: Headers
    media_type: str
    """The content type without parameters, lower case; empty where there is none."""
    whole: bool
    """False where the end of the body is only known by the end of the connection."""

    async def read(self) -> bytes:
        """The whole body. Raises Fault."""

    async def chunk(self) -> bytes:
        """The next bytes as they come, empty at the end. Raises Fault."""

    def finish(self) -> None:
        """Nothing more is wanted: give the connection back if the body ends at once, close it otherwise."""

    def close(self) -> None:
        """Break the connection off unless the body was read to its end. May be called twice."""


class Upstream(Protocol):
    async def open(self, call: Call, *, stream: bool, passed: Headers, clock: Clock) -> Incoming:
        """Send a call, with the client's headers that may pass. Raises Fault, one for a redirect too."""

    async def close(self) -> None:
        """Close every connection."""
