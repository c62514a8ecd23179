"""Collects the arguments of one streamed tool call, and finds out whether they are whole, in linear time."""

from __future__ import annotations

import re

from dragoman.adapters.text_buffer import TextBuffer

__all__ = ["Arguments"]

_MARK = re.compile(r"\\.?|[\"{}\[\]]", re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


class Arguments:
    """The arguments of one call so far.

    `is_closed` scans only what came since it was last asked, so asking it for every piece costs no more than asking it
    once at the end.
    """

    __slots__ = ("_buffer", "_depth", "_in_string", "_is_closed", "_is_escaped", "_unread", "length")

    def __init__(self) -> None:
        self.length = 0  # in characters
        self._buffer = TextBuffer()
        self._unread: list[str] = []
        self._depth = 0
        self._in_string = False
        self._is_escaped = False  # the last text ended in a backslash
        self._is_closed = False

    def add(self, text: str) -> None:
        """Append a piece."""
        self.length += len(text)
        self._buffer.add(text)
        if not self._is_closed:
            self._unread.append(text)

    def text(self) -> str:
        """Return the arguments so far."""
        return self._buffer.text()

    @property
    def is_closed(self) -> bool:
        """Whether the object or array that the text begins is closed: nothing but space can follow in valid JSON."""
        unread, self._unread = self._unread, []
        for text in unread:
            self._scan(text)
        return self._is_closed

    @property
    def is_in_string(self) -> bool:
        """Whether the text so far ends inside a JSON string."""
        return not self.is_closed and self._in_string

    def _scan(self, text: str) -> None:
        start, self._is_escaped = int(self._is_escaped and bool(text)), self._is_escaped and not text
        for match in _MARK.finditer(text, start):
            mark = match[0]
            if mark[0] == "\\":
                self._is_escaped = len(mark) == 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += _STEPS[mark]
                self._is_closed |= self._depth == 0 and mark in "}]"
