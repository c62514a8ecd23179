"""A text that arrives in parts: the parts are kept as received, and joined when the text is needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import cast

import orjson

__all__ = ["CharacterCount", "TextBuffer", "count_characters", "decode_fragment"]

_MOST_PARTS = 512
_MOST_UNCOUNTED = 32  # fragments; every stream keeps so many


class TextBuffer:
    """Collects texts and raw JSON fragments: the contents of JSON strings between their quotes, as in a DeltaRun."""

    __slots__ = ("_joined", "_parts")

    def __init__(self, *texts: str) -> None:
        self._joined: list[str] = []
        self._parts: list[str | bytes] = [*texts]

    def __bool__(self) -> bool:
        return bool(self._parts or self._joined)

    def add(self, text: str) -> None:
        """Append a text."""
        self._parts.append(text)
        if len(self._parts) > _MOST_PARTS:
            self._join()

    def add_fragments(self, fragments: list[bytes]) -> None:
        """Append raw JSON fragments, which `text` decodes."""
        self._parts += fragments
        if len(self._parts) > _MOST_PARTS:
            self._join()

    def text(self) -> str:
        """Return the whole text so far."""
        self._join()
        return "".join(self._joined)

    def _join(self) -> None:
        """Join the parts: an object for each token would take several times the memory of its text."""
        if self._parts:
            self._joined.append("".join([_decode(kind, parts) for kind, parts in groupby(self._parts, type)]))
            self._parts = []


def _decode(kind: type, parts: Iterator[str | bytes]) -> str:
    """One text of parts of a kind. No escape in a fragment is cut."""
    if kind is str:
        return "".join(cast(Iterator[str], parts))
    return decode_fragment(b"".join(cast(Iterator[bytes], parts)))


class CharacterCount:
    """Counts the characters of texts and of raw JSON fragments, only when their number is needed."""

    __slots__ = ("_counted", "_fragments")

    def __init__(self) -> None:
        self._counted = 0
        self._fragments: list[bytes] = []

    def add(self, text: str) -> None:
        """Add a text."""
        self._counted += len(text)

    def add_fragments(self, fragments: list[bytes]) -> None:
        """Add raw JSON fragments."""
        self._fragments += fragments
        if len(self._fragments) > _MOST_UNCOUNTED:
            self.total()

    def total(self) -> int:
        """Return the number of characters so far."""
        if self._fragments:
            self._counted += count_characters(self._fragments)
            self._fragments = []
        return self._counted


def count_characters(fragments: list[bytes]) -> int:
    """Count the characters of raw JSON fragments; no escape in them is cut."""
    joined = b"".join(fragments)
    return len(joined) if joined.isascii() and b"\\" not in joined else len(decode_fragment(joined))


def decode_fragment(fragment: bytes) -> str:
    """Decode a raw JSON fragment: the content of a JSON string between its quotes, in UTF-8."""
    if b"\\" not in fragment:
        return fragment.decode()
    text: str = orjson.loads(b'"%b"' % fragment)
    return text
