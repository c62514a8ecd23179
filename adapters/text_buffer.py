"""A text that comes in parts: kept as they come, joined when it is asked for."""

from __future__ import annotations

import orjson

__all__ = ["TextBuffer", "decode_fragment"]


class TextBuffer:
    """`add` takes text, `add_fragments` raw JSON fragments: the insides of JSON strings, as a DeltaRun has them."""

    __slots__ = ("_parts",)

    def __init__(self, *texts: str) -> None:
        self._parts: list[str | bytes] = [*texts]

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, text: str) -> None:
        """Append a text."""
        self._parts.append(text)

    def add_fragments(self, fragments: list[bytes]) -> None:
        """Append raw JSON fragments, which are decoded when the text is asked for."""
        self._parts += fragments

    def text(self) -> str:
        """The whole text so far."""
        return "".join([part if isinstance(part, str) else decode_fragment(part) for part in self._parts])


def decode_fragment(fragment: bytes) -> str:
    """The text of a raw JSON fragment: what is between the quotes of a JSON string, in UTF-8."""
    if b"\\" not in fragment:
        return fragment.decode()
    text: str = orjson.loads(b'"%b"' % fragment)
    return text
