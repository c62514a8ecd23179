"""Tool calls out of a reply's text, while it comes.

    START --bare beginning--> PAYLOAD        (forms that need no marker)
      |  ^--white space
      v
    TEXT --opening marker--> PAYLOAD --its end--> AFTER --closing marker--> CLOSED --other text--> TEXT

Text is content. White space before a payload and around its markers is dropped; a payload that turns out to be no call
becomes content again, marker and all. Bare payloads are calls only where they name a tool of the request.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

from .jsonscan import SPACE
from .payloads import PAYLOADS, Payload
from .pieces import Lexeme, Lexer, Piece
from .toolforms import Form

__all__ = ["ToolCalls"]


class State(enum.Enum):
    START = "start"
    TEXT = "text"
    PAYLOAD = "payload"
    AFTER = "after"
    CLOSED = "closed"


class ToolCalls:
    """One reply. `names` are the tools of the request."""

    def __init__(self, form: Form, names: Collection[str]) -> None:
        self._form = form
        self._names = names
        self._lexer = Lexer(form.markers)
        self._space = ""
        self._before = ""  # white space before the marker, which is dropped with it
        self._marker = ""
        self._payload: Payload | None = None
        self.state = State.START

    def add(self, text: str) -> list[Piece]:
        return [piece for lexeme in self._lexer.add(text) for piece in self._take(lexeme)]

    def finish(self) -> list[Piece]:
        """The end of the text: a call that has begun stays as it is, anything less is content."""
        found = self._take(Lexeme(self._lexer.finish(), False))
        if self._payload is not None and not self._payload.inside:
            found += self._give_back()
        space, self._space = self._space, ""
        return [*found, Piece("content", space)] if space and self.state in (State.START, State.TEXT) else found

    def _take(self, lexeme: Lexeme) -> list[Piece]:
        text, marker = lexeme
        if marker and not (self._payload is not None and self._payload.quoted):
            if text == self._form.open:
                return self._open(text)
            if self.state is State.PAYLOAD or self.state is State.AFTER:
                return self._close(text)
        found: list[Piece] = []
        while text:
            pieces, text = self._read(text)
            found += pieces
        return found

    def _open(self, marker: str) -> list[Piece]:
        found = self._give_back() if self._payload is not None and not self._payload.inside else []
        self._begin(marker, None)
        return found

    def _close(self, marker: str) -> list[Piece]:
        if self._payload is not None and not self._payload.inside:
            self._payload.raw += marker
            return self._give_back()
        self.state, self._payload, self._space = State.CLOSED, None, ""
        return []

    def _begin(self, marker: str, names: Collection[str] | None) -> None:
        self._before, self._marker, self._space = self._space, marker, ""
        self._payload = PAYLOADS[self._form.payload](self._form, names)
        self.state = State.PAYLOAD

    def _read(self, text: str) -> tuple[list[Piece], str]:
        if self.state is State.PAYLOAD:
            return self._in_payload(text)
        if self.state is State.TEXT:
            return self._in_text(text), ""
        bare = text.lstrip()
        self._space += text[: len(text) - len(bare)]
        if not bare:
            return [], ""
        if self.state is State.START and self._form.bare == bare[0]:
            self._begin("", self._names)
            return [], bare
        if self.state is not State.START:
            self._space = ""
        self.state = State.TEXT
        return [], bare

    def _in_text(self, text: str) -> list[Piece]:
        kept = text.rstrip()
        if not kept:
            self._space += text
            return []
        shown, self._space = self._space + kept, text[len(kept) :]
        return [Piece("content", shown)]

    def _in_payload(self, text: str) -> tuple[list[Piece], str]:
        payload = self._payload
        assert payload is not None
        found: list[Piece] = []
        for place, char in enumerate(text):
            pieces = payload.take(char)
            found += pieces or []
            if any(piece.kind == "call" for piece in pieces or ()):
                self._before = self._marker = ""
            if payload.over:
                rest = text[place + (pieces is not None) :]
                return found + self._end(), rest
        return found, ""

    def _end(self) -> list[Piece]:
        """A payload is over: what it leaves behind was no call."""
        payload = self._payload
        assert payload is not None
        if self._marker or payload.raw.strip(SPACE + self._form.around):
            return self._give_back()
        self._payload, self.state = None, State.AFTER
        return []

    def _give_back(self) -> list[Piece]:
        payload, self._payload = self._payload, None
        assert payload is not None
        self.state = State.TEXT
        return self._in_text(self._before + self._marker + payload.raw)
