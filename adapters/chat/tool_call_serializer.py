"""Puts the pieces of parallel tool calls in order: one call after the other, as OpenAI streams them.

Some providers interleave the pieces of several calls. A client that treats a call as complete when the next one begins,
such as OpenAI's streaming helper, would then read half of its arguments. So if a call begins while the arguments of the
previous one are not yet whole, its pieces are held until they are, or until the choice finishes. Nothing is lost.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.streams import Chunk, DeltaRun
from dragoman.adapters.text_buffer import decode_fragment

from .arguments import Arguments

__all__ = ["CallOrder", "ToolCallSerializer"]

_PLAIN = frozenset({"index", "function"})
_ARGUMENTS = frozenset({"arguments"})
_NONE: frozenset[int] = frozenset()  # shared by all streams


class ToolCallSerializer:
    """The serializer of one stream. Takes and returns chunks in hub form."""

    def __init__(self) -> None:
        self._choices: dict[int, CallOrder] = {}
        self._finished: set[int] = set()
        self._text_body: JsonObject | None = None  # of runs without arguments

    def serialize(self, chunk: Chunk) -> Chunk:
        """The chunk with the pieces that may be sent now: the same object if none is held."""
        made = chunk
        for position, choice in enumerate(chunk.body.get("choices") or ()):
            delta, index = choice.get("delta"), choice.get("index")
            pieces = (delta.get("tool_calls") or []) if isinstance(delta, dict) else []
            index = 0 if index is None else index
            if choice.get("finish_reason") is not None:
                self._finished.add(index)
            calls = self._choices.get(index)
            if pieces and calls is None:
                calls = self._choices[index] = CallOrder()
            if calls is not None:
                now = calls.release(pieces, last=index in self._finished)
                made = made if now == pieces else Chunk(_replace_pieces(made.body, position, now))
        return made

    def takes_run(self, run: DeltaRun) -> bool:
        """Whether a run can be sent as it is: it has no arguments, or those of the current call, which it then adds."""
        if run.body is self._text_body:
            return True
        choice = run.body["choices"][0]
        pieces = _delta(choice).get("tool_calls")
        if not pieces:
            self._text_body = run.body
            return True
        calls = self._choices.get(choice["index"])
        if calls is None or not calls.continues(pieces):
            return False
        calls.add_fragments(run.texts)
        return True


class CallOrder:
    """The calls of one choice: the arguments of the current one so far, and the held pieces of the others."""

    def __init__(self) -> None:
        self._current: int | None = None
        self._arguments = Arguments()
        self._held: dict[int, list[JsonObject]] = {}
        self._ended = _NONE

    @property
    def is_open(self) -> bool:
        """Whether a call has begun whose arguments are not whole."""
        return self._current is not None and not self._arguments.is_closed

    def continues(self, pieces: list[JsonObject]) -> bool:
        """Whether these pieces only add to the arguments of the current call, and no other call waits for its end."""
        (piece, *others) = pieces
        if others or self._held or piece.get("index", 0) != self._current:
            return False
        return piece.keys() <= _PLAIN and piece["function"].keys() <= _ARGUMENTS

    def add_fragments(self, fragments: list[bytes]) -> None:
        """Add raw JSON fragments to the arguments of the current call."""
        self._arguments.add(decode_fragment(b"".join(fragments)))

    def release(self, pieces: list[JsonObject], last: bool) -> list[JsonObject]:
        """The pieces that may be sent now, of these and of the held ones; all of them if `last` is true."""
        now: list[JsonObject] = []
        for piece in pieces:
            if (index := piece.get("index", 0)) in self._ended:
                now.append(piece)
            else:
                self._held.setdefault(index, []).append(piece)
        while self._held and (self._current in self._held or last or not self.is_open):
            if self._current not in self._held:
                self._begin(next(iter(self._held)))
            for piece in self._held.pop(self._current):  # type: ignore[arg-type]
                self._arguments.add(_arguments(piece))
                now.append(piece)
        return now

    def _begin(self, index: int) -> None:
        if self._current is not None:
            self._ended |= {self._current}
        self._current, self._arguments = index, Arguments()


def _replace_pieces(body: JsonObject, position: int, pieces: list[JsonObject]) -> JsonObject:
    choices = [*body["choices"]]
    delta = {key: value for key, value in _delta(choices[position]).items() if key != "tool_calls"}
    if pieces:
        delta["tool_calls"] = pieces
    choices[position] = {**choices[position], "delta": delta}
    return {**body, "choices": choices}


def _delta(choice: JsonObject) -> JsonObject:
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def _arguments(piece: JsonObject) -> str:
    said: Any = piece.get("function") or piece.get("custom") or {}
    return said.get("arguments") or said.get("input") or ""
