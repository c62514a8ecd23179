"""Finds the calls of tools in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from typing import NamedTuple

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.text_buffer import TextBuffer

from .json_formats import parse_json
from .tool_text import CLOSE, OPEN

__all__ = ["ToolTextParser", "WrittenCall", "WrittenPart"]


class WrittenCall(NamedTuple):
    """A call. `arguments` is JSON text."""

    name: str
    arguments: str


class WrittenPart(NamedTuple):
    """A part of an answer: a text, or a call. `problem` says why a text that looks like a call is none."""

    text: str = ""
    call: WrittenCall | None = None
    problem: str | None = None


class ToolTextParser:
    """Parses one answer. `names` are those of the tools.

    White space around calls is left out. Text is held back only as long as it may be the beginning of a tag, or be
    white space before one.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""  # the end of the text: white space, or the beginning of a tag
        self._inside: TextBuffer | None = None  # of an open tag
        self._tail = ""  # the end of what is inside
        self._gap = ""  # the white space before the open tag
        self._has_call = False  # only calls and white space have come since the last text

    def feed(self, text: str) -> Iterator[WrittenPart]:
        """The parts that this piece of the text completes."""
        while text:
            text = yield from (self._read_text(text) if self._inside is None else self._read_inside(text))

    def close(self) -> Iterator[WrittenPart]:
        """The parts at the end of the text. An open tag ends there."""
        if self._inside is not None:
            yield self._end_call(OPEN + self._inside.text())
        elif self._held and not (self._has_call and self._held.isspace()):
            yield WrittenPart(self._held)
        self._held, self._inside = "", None

    def _read_text(self, text: str) -> Generator[WrittenPart, None, str]:
        """Returns what follows an opening tag."""
        text = self._held + text
        at = text.find(OPEN)
        size = len(text[: _find_tag_start(text) if at < 0 else at].rstrip())
        said = text[:size].lstrip() if self._has_call else text[:size]
        if said:
            self._has_call = False
            yield WrittenPart(said)
        if at < 0:
            self._held = text[size:]
            return ""
        self._held, self._inside, self._tail, self._gap = "", TextBuffer(), "", text[size:at]
        return text[at + len(OPEN) :]

    def _read_inside(self, text: str) -> Generator[WrittenPart, None, str]:
        """Returns what follows the closing tag."""
        assert self._inside is not None
        tail = self._tail
        end = (tail + text).find(CLOSE)
        self._inside.add(text)
        if end < 0:
            self._tail = (tail + text)[1 - len(CLOSE) :]
            return ""
        rest = (tail + text)[end + len(CLOSE) :]
        whole = self._inside.text()
        written = whole[: len(whole) - len(rest)]
        yield self._end_call(OPEN + written)
        return rest

    def _end_call(self, written: str) -> WrittenPart:
        """The call in a text with its tags; the text itself if there is none in it."""
        self._inside = None
        call, problem = _parse_call(written.removeprefix(OPEN).removesuffix(CLOSE), self._names)
        self._has_call = call is not None
        return WrittenPart(call=call) if call is not None else WrittenPart(self._gap + written, problem=problem)


def _find_tag_start(text: str) -> int:
    """Where the beginning of a tag at the end of a text begins; the length of the text if there is none."""
    for size in range(min(len(OPEN) - 1, len(text)), 0, -1):
        if OPEN.startswith(text[-size:]):
            return len(text) - size
    return len(text)


def _parse_call(text: str, names: Collection[str]) -> tuple[WrittenCall | None, str]:
    """The call that a text describes, or why it is none."""
    value = parse_json(text)
    if value is None:
        return None, f"what is between {OPEN} and {CLOSE} is not one JSON object"
    (found,) = value
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None, "a call has no name"
    if found["name"] not in names:
        return None, "a call names no function that there is"
    arguments = _read_arguments(found.get("arguments", {}))
    if arguments is None:
        return None, "the arguments of a call are not a JSON object"
    return WrittenCall(found["name"], arguments), ""


def _read_arguments(arguments: JsonObject | str | None) -> str | None:
    """The arguments as JSON text; they may be that already."""
    if isinstance(arguments, str):
        value = parse_json(arguments)
        return arguments if value is not None and isinstance(value[0], dict) else None
    return orjson.dumps(arguments or {}).decode() if isinstance(arguments, dict | None) else None
