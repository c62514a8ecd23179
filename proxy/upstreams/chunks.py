"""Reading the chunks of a reply's body (RFC 9112, 7.1), as far as they are plain: a size, the end of a line, so many
bytes, the end of a line.

An event of a stream is mostly one chunk, and a general parser takes longer for it than for its content. Whatever is not
plain is left to that parser, from the chunk on in which it occurs: the last chunk, extensions, sizes of many digits.
"""

from __future__ import annotations

import re
from itertools import repeat

__all__ = ["LAST_CHUNK", "BadChunk", "ChunkReader", "find_chunks"]

LAST_CHUNK = b"0\r\n\r\n"
"""The end of most bodies: a chunk without content, and no trailers."""

_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: ?chunked\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:", re.IGNORECASE)
_HEX = b"0123456789abcdefABCDEF"
_MOST_DIGITS = 8
_LAST_FIELDS = [*LAST_CHUNK.split(_LINE_END)]
_WINDOW = _MOST_DIGITS + len(_LINE_END)


class BadChunk(ValueError):
    """A chunk is longer than its size says."""


class ChunkReader:
    """Reads chunks that arrive in any pieces. Its state: how many bytes of a chunk are missing, its last line end
    included, or the part of a line with a size that has arrived. Chunks often have the size of the one before. Several
    that arrive together are split at once, unless their content has line ends of the same kind."""

    __slots__ = ("_begun", "_can_split", "_line", "_missing", "_size")

    def __init__(self) -> None:
        self._missing = 0
        self._begun = b""
        self._line, self._size = b"none", 0  # of the chunk before
        self._can_split = True

    def read(self, data: bytes) -> tuple[bytes, bytes]:
        """The content in the next bytes, and the bytes from the first chunk on that is not plain; empty if all are. The
        reader is not used again after such a chunk. Raises BadChunk."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        parts: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if self._missing:
                at = self._read_content(data, at, parts)
            elif not data.startswith(self._line, at) and not self._read_size(data, at):
                if self._begun:
                    break
                return b"".join(parts), data[at:]
            else:
                at += len(self._line)
                stop = at + self._size
                if data[stop : stop + 2] == _LINE_END:
                    parts.append(data[at:stop])
                    at = stop + 2
                else:
                    self._missing = self._size + 2
            if at == end:
                break
            if self._can_split and not self._missing:
                at = self._split(data, at, parts)
        return parts[0] if len(parts) == 1 else b"".join(parts), b""

    def _read_size(self, data: bytes, at: int) -> bool:
        """Read the line with the size of the chunk that begins here. False if it is not plain, or only begun."""
        stop = data.find(_LINE_END, at, at + _WINDOW)
        if stop < 0 and len(data) - at < _WINDOW:
            self._begun = data[at:]
            return False
        digits = data[at:stop] if stop > at else b""
        if not digits or digits.strip(_HEX) or not (size := int(digits, 16)):
            return False
        self._line, self._size = data[at : stop + 2], size
        return True

    def _split(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Take all chunks that are whole, and return where they end. If one of them is not plain, none is taken."""
        fields = data[at:].split(_LINE_END)
        count = (len(fields) - 1) // 2 * 2
        if fields[-3:] == _LAST_FIELDS:
            count -= 2
        sizes, contents = fields[:count:2], fields[1:count:2]
        self._can_split = _are_sizes(sizes, contents)
        if self._can_split:
            parts += contents
            at = len(data) - len(_LINE_END.join(fields[count:]))
        return at

    def _read_content(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Take what there is of a chunk's content and of its line end, and return where that stops."""
        stop, left = at + self._missing, len(data) - at
        if data[stop - 2 : stop] == _LINE_END:  # the rest of it
            parts.append(data[at : stop - 2])
            self._missing = 0
            return stop
        if left <= self._missing - 2:  # nothing but content
            parts.append(data[at:])
            self._missing -= left
            return at + left
        content = data[at : at + max(self._missing - 2, 0)]
        if content:
            parts.append(content)
            self._missing -= len(content)
            at += len(content)
        if self._missing <= 2:
            line_end = data[at : at + self._missing]
            if line_end != _LINE_END[2 - self._missing :][: len(line_end)]:
                raise BadChunk("a chunk is longer than its size says")
            self._missing -= len(line_end)
            at += len(line_end)
        return at


def _are_sizes(fields: list[bytes], contents: list[bytes]) -> bool:
    """Whether each field is the plain size of its content."""
    if not all(fields) or b"".join(fields).translate(None, _HEX):
        return False
    sizes = [*map(int, fields, repeat(16))]
    return all(contents) and sizes == [*map(len, contents)]


def find_chunks(data: bytes) -> int | None:
    """Where the chunks begin in the first bytes of a reply; None if it has none, or if its head is not complete."""
    end = data.find(_HEAD_END)
    if end < 0 or not data.startswith(b"HTTP/1.1 200 ") or _CHUNKED.search(data, 0, end + 2) is None:
        return None
    return None if _LENGTH.search(data, 0, end + 2) else end + len(_HEAD_END)
