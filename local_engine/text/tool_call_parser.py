"""The incremental parser for tool calls in a reply's text.

    START --bare start--> PAYLOAD            (formats without a marker)
      |  ^--white space
      v
    TEXT --opening marker--> PAYLOAD --its end--> AFTER --closing marker--> CLOSED --other text--> TEXT

Text is content. White space before a payload and around its markers is dropped. A payload that is not a call becomes
content, including its marker. A payload without markers is a call only if it names a tool of the request.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

from .json_scanner import SPACE
from .payload_parsers import PAYLOAD_PARSERS, PayloadParser
from .segments import Lexeme, MarkerLexer, Segment
from .tool_call_formats import ToolCallFormat

__all__ = ["ToolCallParser"]


class State(enum.Enum):
    """The states of the parser."""

    START = "start"
    TEXT = "text"
    PAYLOAD = "payload"
    AFTER = "after"
    CLOSED = "closed"


class ToolCallParser:
    """Parses one reply. `names` are the tools of the request."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str]) -> None:
        self._format = tool_format
        self._names = names
        self._lexer = MarkerLexer(tool_format.markers)
        self._space = ""
        self._space_before = ""  # white space before the marker, dropped with it
        self._marker = ""
        self._payload: PayloadParser | None = None
        self.state = State.START

    def add(self, text: str) -> list[Segment]:
        return [segment for lexeme in self._lexer.add(text) for segment in self._parse(lexeme)]

    def finish(self) -> list[Segment]:
        """End the text: a call that has started stays as it is, an incomplete start of one is content."""
        found = self._parse(Lexeme(self._lexer.finish(), False))
        if self._payload is not None and not self._payload.in_call:
            found += self._convert_payload_to_content()
        space, self._space = self._space, ""
        return [*found, Segment("content", space)] if space and self.state in (State.START, State.TEXT) else found

    def _parse(self, lexeme: Lexeme) -> list[Segment]:
        text, marker = lexeme
        if marker and not (self._payload is not None and self._payload.is_quoted):
            if text == self._format.open:
                return self._open_payload(text)
            if self.state is State.PAYLOAD or self.state is State.AFTER:
                return self._close_payload(text)
        found: list[Segment] = []
        while text:
            segments, text = self._parse_text(text)
            found += segments
        return found

    def _open_payload(self, marker: str) -> list[Segment]:
        found = self._convert_payload_to_content() if self._payload is not None and not self._payload.in_call else []
        self._start_payload(marker, None)
        return found

    def _close_payload(self, marker: str) -> list[Segment]:
        if self._payload is not None and not self._payload.in_call:
            self._payload.raw += marker
            return self._convert_payload_to_content()
        self.state, self._payload, self._space = State.CLOSED, None, ""
        return []

    def _start_payload(self, marker: str, names: Collection[str] | None) -> None:
        self._space_before, self._marker, self._space = self._space, marker, ""
        self._payload = PAYLOAD_PARSERS[self._format.payload](self._format, names)
        self.state = State.PAYLOAD

    def _parse_text(self, text: str) -> tuple[list[Segment], str]:
        if self.state is State.PAYLOAD:
            return self._parse_payload(text)
        if self.state is State.TEXT:
            return self._parse_content(text), ""
        bare = text.lstrip()
        self._space += text[: len(text) - len(bare)]
        if not bare:
            return [], ""
        if self.state is State.START and self._format.bare == bare[0]:
            self._start_payload("", self._names)
            return [], bare
        if self.state is not State.START:
            self._space = ""
        self.state = State.TEXT
        return [], bare

    def _parse_content(self, text: str) -> list[Segment]:
        kept = text.rstrip()
        if not kept:
            self._space += text
            return []
        shown, self._space = self._space + kept, text[len(kept) :]
        return [Segment("content", shown)]

    def _parse_payload(self, text: str) -> tuple[list[Segment], str]:
        payload = self._payload
        assert payload is not None
        found: list[Segment] = []
        for index, char in enumerate(text):
            segments = payload.add(char)
            found += segments or []
            if any(segment.kind == "call" for segment in segments or ()):
                self._space_before = self._marker = ""
            if payload.done:
                rest = text[index + (segments is not None) :]
                return found + self._end_payload(), rest
        return found, ""

    def _end_payload(self) -> list[Segment]:
        """End a payload. If it leaves text that is not a call, the payload becomes content."""
        payload = self._payload
        assert payload is not None
        if self._marker or payload.raw.strip(SPACE + self._format.separators):
            return self._convert_payload_to_content()
        self._payload, self.state = None, State.AFTER
        return []

    def _convert_payload_to_content(self) -> list[Segment]:
        payload, self._payload = self._payload, None
        assert payload is not None
        self.state = State.TEXT
        return self._parse_content(self._space_before + self._marker + payload.raw)
