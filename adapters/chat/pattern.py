"""What a chunk of text looks like in bytes, so that the next one of its kind need not be parsed, mended and judged.

Most chunks of a stream are the same bytes but for the text. Where a JSON string stands in a JSON text, any other JSON
string may stand, and nothing else changes: so a chunk is of the pattern when it begins and ends like the first one and
what lies between is one JSON string. That the string is the text of the delta is tried out when the pattern is made.
"""

from __future__ import annotations

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.streams import Chunk

__all__ = ["Pattern"]

_TEXT_ONLY = {"content": None}.keys()
_TRIAL = "\x00 trial"


class Pattern:
    """The bytes around a text, and the chunk in hub form that they make with one."""

    __slots__ = ("_after", "_before", "_body", "_choice", "_cut", "_from", "_same")

    def __init__(self, before: bytes, after: bytes, body: JsonObject, same: bool) -> None:
        self._before, self._after = before, after
        self._from, self._cut = len(before) - 1, 1 - len(after)  # the quotes are the string's
        self._body = body
        self._choice: JsonObject = body["choices"][0]
        self._same = same

    @classmethod
    def of(cls, body: JsonObject, raw: bytes, same: bool) -> Pattern | None:
        """The pattern of a chunk of text, if it is one. `body` is the chunk in hub form, which was made from `raw`;
        `same` says that it is the same chunk."""
        delta = body["choices"][0]["delta"]
        if delta.keys() != _TEXT_ONLY or type(delta["content"]) is not str:
            return None
        text = orjson.dumps(delta["content"])
        at = raw.rfind(text)
        if at < 0:
            return None
        before, after = raw[: at + 1], raw[at + len(text) - 1 :]
        tried, wanted = orjson.loads(before + orjson.dumps(_TRIAL)[1:-1] + after), orjson.loads(raw)
        wanted["choices"][0]["delta"]["content"] = _TRIAL
        return cls(before, after, body, same) if tried == wanted else None

    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in these bytes, if they are of the pattern."""
        if not (raw.startswith(self._before) and raw.endswith(self._after)):
            return None
        try:
            text = orjson.loads(raw[self._from : self._cut or None])
        except orjson.JSONDecodeError:
            return None
        choice = {**self._choice, "delta": {"content": text}}
        return Chunk({**self._body, "choices": [choice]}, raw if self._same else None)
