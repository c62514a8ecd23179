"""Incremental framing of server-sent events: bytes in, items out.

Theory of operation. The framer follows the event stream format of the HTML standard, on bytes, with one difference:
what a browser would skip as unknown is returned as a Stray, in the order of the bytes, because providers write error
texts and bare JSON between their events. Its state is only what the next byte needs:

    _fresh    nothing has been received yet but a part of a byte order mark
    _cr       the last byte was CR: that line has ended, and an LF at the start of the next bytes belongs to it
    _tail     the line that has not ended yet; line ends become LF on entry, so it holds neither CR nor LF
    _data     the data lines of the event that has not ended yet; _name its `event` field, _size their bytes

Fast path: if the bytes begin at an event's first byte and hold only events of one line `data: ...`, a single split
finds all. Everything else is read line by line:

    blank line           the event ends: an Event is returned if it has a data line, empty or not
    `:...`               a comment: skipped
    `data`, `event`      kept for the event
    `id`, `retry`        known, but not needed: skipped
    anything else        a Stray is returned; before it an event with a data line that is still open

So the items depend on the bytes alone, never on how they were cut into chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["FIELDS", "Event", "Framer", "Item", "Stray", "TooLong", "encode"]

_BOM = b"\xef\xbb\xbf"
_FIELD = b"data: "
FIELDS = (b"data", b"event", b"id", b"retry")
"""The names that a line may have in an event stream."""


class TooLong(ValueError):
    """A line, or the data of one event, is longer than the limit. The framer cannot be used afterwards."""


@dataclass(slots=True)  # not frozen: one is made for every token, and freezing doubles the cost
class Event:
    """One dispatched event: its data lines joined by LF, and the value of its `event` field (empty: none)."""

    data: bytes
    event: bytes = b""


@dataclass(frozen=True, slots=True)
class Stray:
    """One line that is no SSE field: bare JSON, bare text, an error page. SSE parsers skip it; dragoman must not."""

    text: bytes


Item: TypeAlias = Event | Stray


class Framer:
    """Frames one stream. `limit` is the largest size in bytes of a line, and of the data lines of one event."""

    __slots__ = ("_cr", "_data", "_fresh", "_limit", "_name", "_size", "_tail")

    def __init__(self, limit: int = 4 * 1024 * 1024) -> None:
        self._limit = limit
        self._fresh = True
        self._cr = False
        self._tail = bytearray()
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0

    @property
    def between_events(self) -> bool:
        """Whether the next byte begins an event."""
        return not (self._fresh or self._cr or self._tail or self._data or self._name)

    def feed(self, data: bytes) -> list[Item]:
        """Return the items that these bytes complete. Raises TooLong."""
        if self._cr or b"\r" in data:
            data = self._normalize_line_ends(data)
        if self._fresh:
            data = self._skip_byte_order_mark(data)
        if self._tail:
            self._tail += data
            if b"\n" not in data:
                self._check_size(len(self._tail))
                return []
            data = bytes(self._tail)
            self._tail.clear()
        end = data.rfind(b"\n\n")
        if end >= 0 and not self._data and not self._name and len(data) <= self._limit and data.startswith(_FIELD):
            blocks = data[len(_FIELD) : end].split(b"\n\n" + _FIELD)
            if data.count(b"\n", 0, end) == 2 * len(blocks) - 2:
                items: list[Item] = [Event(block) for block in blocks]
                return items if end + 2 == len(data) else items + self._read_lines(data[end + 2 :])
        return self._read_lines(data)

    def take_begun_line(self, most: int) -> bytes:
        """Take back the line that has begun, if it is all that is kept, and has at most so many bytes; else nothing.
        The next byte then begins an event, and the line is to be fed once more, before it."""
        begun = self._tail
        if not 0 < len(begun) <= most:
            return b""
        self._tail = bytearray()
        if self.between_events:
            return bytes(begun)
        self._tail = begun
        return b""

    def close(self) -> list[Item]:
        """Return what the end of the stream completes: an event without a blank line, a line without a line end.

        Raises TooLong.
        """
        line = bytes(self._tail)
        self._tail.clear()
        items: list[Item] = []
        if line.partition(b":")[0] == b"data":
            self._read_line(line, items)
            line = b""
        self._dispatch(items)
        if line and not line.startswith(b":"):
            items.append(Stray(line))
        return items

    def _read_lines(self, data: bytes) -> list[Item]:
        *lines, tail = data.split(b"\n")
        items: list[Item] = []
        for line in lines:
            if not line:
                self._dispatch(items)
            elif line.startswith(_FIELD):
                self._add_data(line[len(_FIELD) :])
            else:
                self._read_line(line, items)
        self._check_size(len(tail))
        self._tail += tail
        return items

    def _read_line(self, line: bytes, items: list[Item]) -> None:
        name, _, value = line.partition(b":")
        self._check_size(len(line))
        if name == b"data":
            self._add_data(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.removeprefix(b" ")
        elif name not in (b"", b"id", b"retry"):
            if self._data:
                self._dispatch(items)
            items.append(Stray(line))

    def _add_data(self, value: bytes) -> None:
        self._size += len(value) + len(_FIELD)
        self._check_size(self._size)
        self._data.append(value)

    def _dispatch(self, items: list[Item]) -> None:
        if self._data:
            items.append(Event(b"\n".join(self._data), self._name))
            self._data = []
            self._size = 0
        self._name = b""

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise TooLong(f"a server-sent event is longer than {self._limit} bytes")

    def _normalize_line_ends(self, data: bytes) -> bytes:
        if self._cr and data:
            data = data.removeprefix(b"\n")
            self._cr = False
        if data.endswith(b"\r"):
            self._cr = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _skip_byte_order_mark(self, data: bytes) -> bytes:
        data = bytes(self._tail) + data
        self._tail.clear()
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._tail += data
            return b""
        self._fresh = False
        return data.removeprefix(_BOM)


def encode(data: bytes, event: bytes = b"") -> bytes:
    """Write one event as bytes. A line end of any kind in `data` begins a new data line."""
    head = b"event: " + event + b"\n" if event else b""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n" in data:
        data = data.replace(b"\n", b"\n" + _FIELD)
    return head + _FIELD + data + b"\n\n"
