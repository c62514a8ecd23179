"""The pieces of parallel tool calls, one call after the other, as OpenAI streams them.

Some providers send the pieces of several calls in turns. Clients that take a call for whole as soon as the next one
begins, as OpenAI's streaming helper does, would then read half of its arguments. So a call that begins while the
arguments of the one before it are no JSON text yet waits, until they are or the choice finishes. Nothing is left out.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.streams import Chunk

__all__ = ["ToolCallSerializer"]


class ToolCallSerializer:
    """One stream's. Chunks come and go in hub form."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}

    def take(self, chunk: Chunk) -> Chunk | None:
        """The chunk with the pieces whose turn it is, the very same where nothing waits; None where nothing is left."""
        made = chunk
        for position, choice in enumerate(chunk.body.get("choices") or ()):
            pieces = _delta(choice).get("tool_calls") or []
            turn = self._turns.get(choice.get("index"))
            if pieces and turn is None:
                turn = self._turns[choice.get("index")] = _Turn()
            if turn is not None:
                now = turn.take(pieces, last=choice.get("finish_reason") is not None)
                made = made if now == pieces else Chunk(_with(made.body, position, now))
        return chunk if made is chunk else made if _says(made.body) else None


class _Turn:
    """The calls of one choice: the current one's arguments so far, and the pieces of those that wait."""

    def __init__(self) -> None:
        self._current: int | None = None
        self._arguments = ""
        self._waiting: dict[int, list[JsonObject]] = {}

    def take(self, pieces: list[JsonObject], last: bool) -> list[JsonObject]:
        """The pieces that may go out now: all that there are with the last chunk."""
        for piece in pieces:
            self._waiting.setdefault(piece.get("index", 0), []).append(piece)
        now: list[JsonObject] = []
        while self._waiting:
            if self._current not in self._waiting:
                if not (last or self._current is None or _is_json(self._arguments)):
                    break
                self._current, self._arguments = next(iter(self._waiting)), ""
            for piece in self._waiting.pop(self._current):
                self._arguments += _arguments(piece)
                now.append(piece)
        return now


def _with(body: JsonObject, position: int, pieces: list[JsonObject]) -> JsonObject:
    choices = [*body["choices"]]
    delta = {key: value for key, value in _delta(choices[position]).items() if key != "tool_calls"}
    if pieces:
        delta["tool_calls"] = pieces
    choices[position] = {**choices[position], "delta": delta}
    return {**body, "choices": choices}


def _delta(choice: JsonObject) -> JsonObject:
    delta = choice.get("delta")
    return delta if isinstance(delta, dict) else {}


def _says(body: JsonObject) -> bool:
    return any(_delta(choice) or choice.get("finish_reason") for choice in body["choices"]) or bool(body.get("usage"))


def _arguments(piece: JsonObject) -> str:
    said: Any = piece.get("function") or piece.get("custom") or {}
    return said.get("arguments") or said.get("input") or ""


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
