"""The segments of a reply's text, and the lexer that finds a model's markers.

    text -> ReasoningParser -> ToolCallParser -> Segment*

Each parser accepts text split anywhere; the merged segments do not depend on the split. Adjacent segments of one kind
belong together, except `call`, which starts a new tool call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["Lexeme", "MarkerLexer", "Segment", "SegmentKind", "SegmentParser", "merge_segments"]

SegmentKind: TypeAlias = Literal["content", "reasoning", "call", "arguments"]


class Segment(NamedTuple):
    """Text of one kind. A `call` contains a function's name, `arguments` JSON text of the preceding call."""

    kind: SegmentKind
    text: str


class SegmentParser(Protocol):
    """Splits text into segments."""

    def add(self, text: str) -> list[Segment]: ...

    def finish(self) -> list[Segment]: ...


class Lexeme(NamedTuple):
    """A marker, or text between markers."""

    text: str
    marker: bool


class MarkerLexer:
    """Splits text at markers. No marker may start with another one."""

    def __init__(self, markers: Iterable[str]) -> None:
        self._markers = tuple(marker for marker in markers if marker)
        self._held = ""

    def add(self, text: str) -> Iterator[Lexeme]:
        """Add text; yield lexemes. A text end that could be the start of a marker is held back."""
        pending, self._held = self._held + text, ""
        while hits := [(pending.find(marker), marker) for marker in self._markers if marker in pending]:
            at, marker = min(hits)
            if at:
                yield Lexeme(pending[:at], False)
            yield Lexeme(marker, True)
            pending = pending[at + len(marker) :]
        held = max((_count_overlap(pending, marker) for marker in self._markers), default=0)
        self._held = pending[len(pending) - held :]
        if len(pending) > held:
            yield Lexeme(pending[: len(pending) - held], False)

    def finish(self) -> str:
        """End the text; return what was held back."""
        held, self._held = self._held, ""
        return held


def _count_overlap(text: str, marker: str) -> int:
    """Count the characters of the longest text end that is a proper prefix of the marker."""
    return next((size for size in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:size])), 0)


def merge_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Merge adjacent segments of one kind."""
    found: list[Segment] = []
    for segment in segments:
        if found and found[-1].kind == segment.kind != "call":
            found[-1] = Segment(segment.kind, found[-1].text + segment.text)
        elif segment.text or segment.kind == "call":
            found.append(segment)
    return found
