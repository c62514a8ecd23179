"""Bounded decompression of gzip and deflate bodies, without any input or output."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

__all__ = ["SLICE", "BadEncoding", "DecompressedTooLarge", "Decompressor", "create_decompressor"]

SLICE = 256 * 1024
"""The most bytes that one step returns."""

_PIECE = 64 * 1024  # bytes fed at a time: zlib copies the rest of them for each slice that it returns

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": zlib.MAX_WBITS}


class BadEncoding(ValueError):
    """The content coding is unknown, or the bytes are not valid in it."""


class DecompressedTooLarge(ValueError):
    """The decompressed body is larger than the limit."""


class Decompressor:
    """Decompresses one body: at most `SLICE` bytes at a time and `limit` bytes in all.

    `pending` is true if `feed(b"")` returns more. Raises BadEncoding and DecompressedTooLarge.
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
        """Decompress bytes and return the next slice. Raises BadEncoding and DecompressedTooLarge."""
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
            raise DecompressedTooLarge("the decompressed body is too large")
        return out

    def decompress(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the slices of a whole body one by one, so that a caller can do other work in between.

        Raises BadEncoding and DecompressedTooLarge.
        """
        for piece in pieces:
            for start in range(0, len(piece), _PIECE):
                yield self.feed(piece[start : start + _PIECE])
                while self.pending:
                    yield self.feed(b"")
        self.close()

    def close(self) -> None:
        """Check, after the last bytes, that the body is complete. Raises BadEncoding."""
        if not self._machine.eof:
            raise BadEncoding(f"the {self._coding} body ends early")


def create_decompressor(header: str | None, limit: int) -> Decompressor | None:
    """Create the decompressor for a Content-Encoding header; None if the body is plain. Raises BadEncoding."""
    coding = (header or "").strip().lower()
    return None if coding in ("", "identity") else Decompressor(coding, limit)


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and data[0] >> 4 <= 7
