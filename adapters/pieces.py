"""A text that comes in pieces: kept as they come, made one when it is asked for."""

from __future__ import annotations

import orjson

__all__ = ["Pieces", "decoded"]


class Pieces:
    """`add` takes text, `add_insides` the insides of JSON strings, as runs have them."""

    __slots__ = ("_pieces",)

    def __init__(self, *texts: str) -> None:
        self._pieces: list[str | bytes] = [*texts]

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def add_insides(self, insides: list[bytes]) -> None:
        self._pieces += insides

    def text(self) -> str:
        return "".join([piece if isinstance(piece, str) else decoded(piece) for piece in self._pieces])


def decoded(inside: bytes) -> str:
    """The text that the inside of a JSON string stands for."""
    if b"\\" not in inside:
        return inside.decode()
    text: str = orjson.loads(b'"%b"' % inside)
    return text
