"""Reasoning at the beginning of a reply, told from what follows it.

    START --<think>--> THINKING --</think>--> TRIM --text--> CONTENT
      '-----------------------other text----------------------^

A prompt whose template already wrote the opening marker begins at THINKING. White space around the markers belongs to
neither side. Markers in the content are text.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .pieces import Kind, Lexeme, Lexer, Piece

__all__ = ["THINK", "Marks", "Splitter", "find_marks"]


@dataclass(frozen=True, slots=True)
class Marks:
    open: str
    close: str

    def opened_by(self, prompt: str) -> bool:
        """Whether a prompt ends inside the reasoning."""
        return prompt.rstrip().endswith(self.open)

    def closed_by(self, prompt: str) -> bool:
        """Whether a prompt ends with reasoning that is over already."""
        return prompt.rstrip().endswith(self.close)


THINK = Marks("<think>", "</think>")


def find_marks(template: str, settings: Mapping[str, Any]) -> Marks | None:
    """The markers of a folder: `reasoning` of dragoman.json (false, true, or both markers), else the template's.

    Raises ValueError for settings of another form.
    """
    given = settings.get("reasoning")
    if given is None:
        return THINK if THINK.close in template else None
    if isinstance(given, bool):
        return THINK if given else None
    match given:
        case {"open": str(opening), "close": str(closing)} if opening and closing:
            return Marks(opening, closing)
    raise ValueError('reasoning is true, false, or {"open": "<think>", "close": "</think>"}')


class State(enum.Enum):
    START = "start"
    THINKING = "thinking"
    TRIM = "trim"
    CONTENT = "content"


class Splitter:
    def __init__(self, marks: Marks, *, opened: bool = False) -> None:
        self._marks = marks
        self._lexer = Lexer((marks.open, marks.close))
        self._space = ""
        self._begun = False
        self.state = State.THINKING if opened else State.START

    @property
    def thinking(self) -> bool:
        return self.state is State.THINKING

    @property
    def _over(self) -> bool:
        return self.state is State.CONTENT

    def add(self, text: str) -> list[Piece]:
        if self._over:
            return self._content(text)
        found: list[Piece] = []
        for lexeme in self._lexer.add(text):
            found += self._take(lexeme)
        return found + (self._content(self._lexer.finish()) if self._over else [])

    def finish(self) -> list[Piece]:
        found = self._take(Lexeme(self._lexer.finish(), False))
        kind: Kind = "reasoning" if self.state is State.THINKING else "content"
        space, self._space = self._space, ""
        return [*found, Piece(kind, space)] if space else found

    def _take(self, lexeme: Lexeme) -> list[Piece]:
        if self.state is State.START:
            return self._start(lexeme)
        if self.state is State.THINKING:
            return self._think(lexeme)
        return self._trim(lexeme) if self.state is State.TRIM else self._content(lexeme.text)

    def _start(self, lexeme: Lexeme) -> list[Piece]:
        if lexeme == (self._marks.open, True):
            self.state, self._space = State.THINKING, ""
            return []
        whole, self._space = self._space + lexeme.text, ""
        if whole.strip():
            self.state = State.CONTENT
            return self._content(whole)
        self._space = whole
        return []

    def _think(self, lexeme: Lexeme) -> list[Piece]:
        if lexeme == (self._marks.close, True):
            self.state, self._space = State.TRIM, ""
            return []
        text = lexeme.text if self._begun else lexeme.text.lstrip()
        kept = text.rstrip()
        if not kept:
            self._space += text
            return []
        shown, self._space, self._begun = self._space + kept, text[len(kept) :], True
        return [Piece("reasoning", shown)]

    def _trim(self, lexeme: Lexeme) -> list[Piece]:
        text = lexeme.text.lstrip()
        if not text:
            return []
        self.state = State.CONTENT
        return self._content(text)

    def _content(self, text: str) -> list[Piece]:
        return [Piece("content", text)] if text else []
