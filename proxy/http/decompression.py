"""Bounded decompression of gzip and deflate bodies."""

from __future__ import annotations

import asyncio
import zlib

__all__ = ["SLICE", "BadEncoding", "Inflater", "TooMuch", "codec"]

SLICE = 256 * 1024
_PIECE = 64 * 1024  # of a body: what is left of it is copied for each slice that comes out

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": zlib.MAX_WBITS}


class BadEncoding(ValueError):
    """The coding is unknown, or the bytes are not what it says."""


class TooMuch(ValueError):
    """More came out than is allowed."""


class Inflater:
    """Bytes in, decompressed bytes out, `SLICE` at a time and never more than `limit` in all.

    `pending` tells that more will come out of `feed(b"")`. Raises BadEncoding and TooMuch.
    """

    __slots__ = ("_coding", "_left", "_machine", "_started", "pending")

    def __init__(self, coding: str, limit: int) -> None:
        if coding not in _WINDOWS:
            raise BadEncoding(f"content encoding {coding!r} is not supported")
        self._coding = coding
        self._left = limit
        self._started = False
        self._machine = zlib.decompressobj(_WINDOWS[coding])
        self.pending = False

    def feed(self, data: bytes) -> bytes:
        if not self._started and data:
            self._started = True
            if self._coding == "deflate" and not _has_zlib_header(data):
                self._machine = zlib.decompressobj(-zlib.MAX_WBITS)  # raw deflate is sent under the same name
        try:
            out = self._machine.decompress(self._machine.unconsumed_tail + data, SLICE)
        except zlib.error as error:
            raise BadEncoding(f"the body is not valid {self._coding}") from error
        self.pending = len(out) == SLICE
        if self._machine.unused_data:
            raise BadEncoding(f"bytes follow the end of the {self._coding} body")
        self._left -= len(out)
        if self._left < 0:
            raise TooMuch("the decompressed body is too large")
        return out

    async def whole(self, body: bytes) -> bytes:
        """What a whole body holds. Others get their turn after each piece."""
        parts = []
        for at in range(0, len(body), _PIECE):
            parts.append(self.feed(body[at : at + _PIECE]))
            while self.pending:
                await asyncio.sleep(0)
                parts.append(self.feed(b""))
            if len(body) > _PIECE:
                await asyncio.sleep(0)
        self.close()
        return b"".join(parts)

    def close(self) -> None:
        """To be called after the last bytes."""
        if not self._machine.eof:
            raise BadEncoding(f"the {self._coding} body ends early")


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and data[0] >> 4 <= 7


def codec(header: str | None, limit: int) -> Inflater | None:
    """What undoes a Content-Encoding header: None where there is nothing to undo. Raises BadEncoding."""
    coding = (header or "").strip().lower()
    return None if coding in ("", "identity") else Inflater(coding, limit)
