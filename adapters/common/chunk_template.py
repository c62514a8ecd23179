"""The bytes of a chunk of text, so that the next one of its kind need not be parsed, normalized and validated.

Most chunks of a stream have the same bytes but for the text. In a JSON text one JSON string can take the place of
another, and nothing else changes: so a chunk matches the template if it begins and ends like the first one, with one
JSON string in between. That the string is the text of the choice is tried out when the template is made.

A run is such chunks one after the other, as `data: ` blocks. It is cut apart at the bytes between two texts. That each
part is the inside of one JSON string is seen from its bytes; the parts are not decoded until their text is needed.
"""

from __future__ import annotations

import re

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.edits import replace
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.streams import Chunk, DeltaRun

__all__ = ["ChunkTemplate"]

_TRIAL = "\x00 trial"
_HEAD, _TAIL = b"data: ", b"\n\n"  # of an event
_INSIDE = re.compile(
    rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}))*+'
)
"""What may be between the quotes of a JSON string; the halves of a surrogate pair are left to the JSON parser. Several
such texts joined by spaces match, and nothing else does: no escape goes on behind a space."""


class ChunkTemplate:
    """The bytes before and after a text, and the chunk in hub form that they make with one."""

    __slots__ = (
        "_after",
        "_before",
        "_body",
        "_cut",
        "_from",
        "_head",
        "_place",
        "_same",
        "_tail",
    )

    def __init__(self, before: bytes, after: bytes, body: JsonObject, same: bool, place: Path) -> None:
        self._before, self._after = before, after
        self._head, self._tail = _HEAD + before, after + _TAIL
        self._from, self._cut = len(before) - 1, 1 - len(after)  # the quotes are the string's
        self._body = body
        self._same = same
        self._place = place

    @classmethod
    def learn(cls, body: JsonObject, raw: bytes, same: bool, place: tuple[str, ...]) -> ChunkTemplate | None:
        """The template of a chunk of text; None if it has no text, or no place for another. `body` is the chunk in hub
        form, which was made from `raw`; `same` says that nothing was changed. `place` is the path of the text inside
        its choice; its holder has nothing else."""
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
        return cls(before, after, body, same, path) if tried == wanted else None

    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in these bytes, the data of one event, if they match."""
        if not (raw.startswith(self._before) and raw.endswith(self._after)):
            return None
        try:
            text = orjson.loads(raw[self._from : self._cut or None])
        except orjson.JSONDecodeError:
            return None
        body = self._body.copy()
        replace(body, self._place, text)
        return Chunk(body, raw if self._same else None)

    def match_run(self, data: bytes, at: int) -> tuple[DeltaRun, int] | None:
        """The matching events that begin at this place, as far as they go, and the place behind them."""
        head, tail = self._head, self._tail
        if not data.startswith(head, at):
            return None
        if data.endswith(tail) and _INSIDE.fullmatch(data, at + len(head), len(data) - len(tail)):
            return self._make_run(data[at:], [data[at + len(head) : -len(tail)]], len(data))
        *blocks, last = data[at + len(_HEAD) :].split(_TAIL + _HEAD)
        if last.endswith(_TAIL):
            blocks.append(last[: -len(_TAIL)])
        texts = self._match_texts(blocks)
        if not texts or not _INSIDE.fullmatch(b" ".join(texts)):
            return None
        end = at + len(texts) * (len(head) + len(tail)) + sum(map(len, texts))
        return self._make_run(data[at:end], texts, end)

    def _match_texts(self, blocks: list[bytes]) -> list[bytes]:
        """The texts in the first of these JSON texts, as far as they match."""
        before, after = self._before, self._after
        start, end = len(before), -len(after)
        texts = []
        for block in blocks:
            if not (block.startswith(before) and block.endswith(after, start)):
                break
            texts.append(block[start:end])
        return texts

    def _make_run(self, data: bytes, texts: list[bytes], end: int) -> tuple[DeltaRun, int] | None:
        """The run of these texts, which `data` is the events of, and `end`."""
        if not _is_utf8(data):
            return None
        return DeltaRun(self._body, self._place, texts, data if self._same else None), end


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
