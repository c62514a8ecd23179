"""What a reply's text comes apart into, and the lexer that finds a model's markers in it.

    text -> Splitter (reasoning) -> ToolCalls (toolcalls) -> Piece*

Each stage takes text in any cuts, and gives the same pieces for each: neighbours of one kind belong together, but for
`call`, which begins a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["Kind", "Lexeme", "Lexer", "Piece", "Stage", "joined"]

Kind: TypeAlias = Literal["content", "reasoning", "call", "arguments"]


class Piece(NamedTuple):
    """`call` carries a function's name; `arguments` is JSON text of the call before it."""

    kind: Kind
    text: str


class Stage(Protocol):
    def add(self, text: str) -> list[Piece]: ...

    def finish(self) -> list[Piece]: ...


class Lexeme(NamedTuple):
    text: str
    marker: bool


class Lexer:
    """Cuts text at markers. No marker may begin with another."""

    def __init__(self, markers: Iterable[str]) -> None:
        self._markers = tuple(marker for marker in markers if marker)
        self._held = ""

    def add(self, text: str) -> Iterator[Lexeme]:
        """What is certain by now, in order; an end that could begin a marker is held back."""
        whole, self._held = self._held + text, ""
        while hits := [(whole.find(marker), marker) for marker in self._markers if marker in whole]:
            at, marker = min(hits)
            if at:
                yield Lexeme(whole[:at], False)
            yield Lexeme(marker, True)
            whole = whole[at + len(marker) :]
        kept = max((_overlap(whole, marker) for marker in self._markers), default=0)
        self._held = whole[len(whole) - kept :]
        if len(whole) > kept:
            yield Lexeme(whole[: len(whole) - kept], False)

    def finish(self) -> str:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, marker: str) -> int:
    """The longest end of the text that the marker begins with."""
    return next((size for size in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:size])), 0)


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces with neighbours of one kind made one."""
    found: list[Piece] = []
    for piece in pieces:
        if found and found[-1].kind == piece.kind != "call":
            found[-1] = Piece(piece.kind, found[-1].text + piece.text)
        elif piece.text or piece.kind == "call":
            found.append(piece)
    return found
