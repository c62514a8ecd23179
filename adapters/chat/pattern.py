"""What a chunk of text looks like in bytes, so that the next one of its kind need not be parsed, mended and judged.

Most chunks of a stream are the same bytes but for the text. Where a JSON string stands in a JSON text, any other JSON
string may stand, and nothing else changes: so a chunk is of the pattern when it begins and ends like the first one and
what lies between is one JSON string. That the string is the text of the choice is tried out when the pattern is made.
"""

from __future__ import annotations

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.edits import replace
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.streams import Chunk

__all__ = ["Pattern"]

_TRIAL = "\x00 trial"


class Pattern:
    """The bytes around a text, and the chunk in hub form that they make with one."""

    __slots__ = ("_after", "_before", "_body", "_choice", "_cut", "_from", "_inner", "_key", "_same")

    def __init__(self, before: bytes, after: bytes, body: JsonObject, same: bool, text: tuple[str, ...]) -> None:
        self._before, self._after = before, after
        self._from, self._cut = len(before) - 1, 1 - len(after)  # the quotes are the string's
        self._body = body
        self._choice: JsonObject = body["choices"][0]
        self._same = same
        self._key, self._inner = text[0], text[1] if len(text) > 1 else None

    @classmethod
    def of(cls, body: JsonObject, raw: bytes, same: bool, place: tuple[str, ...]) -> Pattern | None:
        """The pattern of a chunk of text, if it is one. `body` is the chunk in hub form, which was made from `raw`;
        `same` says that it is the same chunk. `place` is where a choice has its text, alone in its holder."""
        path: Path = ("choices", 0, *place)
        said = lookup(body, path)
        if type(said) is not str:
            return None
        text = orjson.dumps(said)
        at = raw.rfind(text)
        if at < 0:
            return None
        before, after = raw[: at + 1], raw[at + len(text) - 1 :]
        tried, wanted = orjson.loads(before + orjson.dumps(_TRIAL)[1:-1] + after), orjson.loads(raw)
        if lookup(wanted, path) != said:
            return None
        replace(wanted, path, _TRIAL)
        return cls(before, after, body, same, place) if tried == wanted else None

    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in these bytes, if they are of the pattern."""
        if not (raw.startswith(self._before) and raw.endswith(self._after)):
            return None
        try:
            text = orjson.loads(raw[self._from : self._cut or None])
        except orjson.JSONDecodeError:
            return None
        choice = {**self._choice, self._key: text if self._inner is None else {self._inner: text}}
        return Chunk({**self._body, "choices": [choice]}, raw if self._same else None)
