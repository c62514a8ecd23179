"""The parser that separates the reasoning at the start of a reply from the content.

    START --<think>--> THINKING --</think>--> TRIM --text--> CONTENT
      '-----------------------other text----------------------^

If the prompt ends with the opening marker, the parser starts in THINKING. White space around the markers is dropped.
Markers in the content are text.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .segments import Lexeme, MarkerLexer, Segment, SegmentKind

__all__ = ["THINK_MARKERS", "ReasoningMarkers", "ReasoningParser", "find_reasoning_markers"]


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The markers around the reasoning."""

    open: str
    close: str

    def is_opened_by(self, prompt: str) -> bool:
        """Whether a prompt ends with the opening marker."""
        return prompt.rstrip().endswith(self.open)

    def is_closed_by(self, prompt: str) -> bool:
        """Whether a prompt ends with the closing marker."""
        return prompt.rstrip().endswith(self.close)


THINK_MARKERS = ReasoningMarkers("<think>", "</think>")


def find_reasoning_markers(template: str, settings: Mapping[str, Any]) -> ReasoningMarkers | None:
    """Find a folder's markers: those that `reasoning` in dragoman.json sets, else those of the template.

    Raises ValueError if `reasoning` is not false, true, or an object with both markers.
    """
    given = settings.get("reasoning")
    if given is None:
        return THINK_MARKERS if THINK_MARKERS.close in template else None
    if isinstance(given, bool):
        return THINK_MARKERS if given else None
    match given:
        case {"open": str(opening), "close": str(closing)} if opening and closing:
            return ReasoningMarkers(opening, closing)
    raise ValueError('reasoning must be true, false, or {"open": "<think>", "close": "</think>"}')


class State(enum.Enum):
    """The states of the parser."""

    START = "start"
    THINKING = "thinking"
    TRIM = "trim"
    CONTENT = "content"


class ReasoningParser:
    """Splits a reply into reasoning and content. `opened`: the prompt already contains the opening marker."""

    def __init__(self, markers: ReasoningMarkers, *, opened: bool = False) -> None:
        self._markers = markers
        self._lexer = MarkerLexer((markers.open, markers.close))
        self._space = ""
        self._has_text = False
        self.state = State.THINKING if opened else State.START

    @property
    def is_reasoning(self) -> bool:
        return self.state is State.THINKING

    @property
    def _is_content(self) -> bool:
        return self.state is State.CONTENT

    def add(self, text: str) -> list[Segment]:
        if self._is_content:
            return self._make_content(text)
        found: list[Segment] = []
        for lexeme in self._lexer.add(text):
            found += self._parse(lexeme)
        return found + (self._make_content(self._lexer.finish()) if self._is_content else [])

    def finish(self) -> list[Segment]:
        found = self._parse(Lexeme(self._lexer.finish(), False))
        kind: SegmentKind = "reasoning" if self.state is State.THINKING else "content"
        space, self._space = self._space, ""
        return [*found, Segment(kind, space)] if space else found

    def _parse(self, lexeme: Lexeme) -> list[Segment]:
        if self.state is State.START:
            return self._parse_start(lexeme)
        if self.state is State.THINKING:
            return self._parse_reasoning(lexeme)
        return self._parse_trimmed(lexeme) if self.state is State.TRIM else self._make_content(lexeme.text)

    def _parse_start(self, lexeme: Lexeme) -> list[Segment]:
        if lexeme == (self._markers.open, True):
            self.state, self._space = State.THINKING, ""
            return []
        text, self._space = self._space + lexeme.text, ""
        if text.strip():
            self.state = State.CONTENT
            return self._make_content(text)
        self._space = text
        return []

    def _parse_reasoning(self, lexeme: Lexeme) -> list[Segment]:
        if lexeme == (self._markers.close, True):
            self.state, self._space = State.TRIM, ""
            return []
        text = lexeme.text if self._has_text else lexeme.text.lstrip()
        kept = text.rstrip()
        if not kept:
            self._space += text
            return []
        shown, self._space, self._has_text = self._space + kept, text[len(kept) :], True
        return [Segment("reasoning", shown)]

    def _parse_trimmed(self, lexeme: Lexeme) -> list[Segment]:
        text = lexeme.text.lstrip()
        if not text:
            return []
        self.state = State.CONTENT
        return self._make_content(text)

    def _make_content(self, text: str) -> list[Segment]:
        return [Segment("content", text)] if text else []
