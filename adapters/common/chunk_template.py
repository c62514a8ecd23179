"""Recognizes chunks of text by their bytes, so that they need not be parsed, normalized and validated.

Most chunks of a stream differ only in their text. If one JSON string replaces another in a JSON document, nothing else
changes. So a chunk matches the template if it begins and ends with the same bytes as the first one, with one JSON
string in between. When the template is made, a trial text proves that this string is the text of the choice.

A run is a sequence of matching chunks, each one an event with the same lines before its data. It is split at the blank
lines, and joined again to prove that nothing but the texts differs; if something does, event by event is compared. A
regular expression proves that each text is the inside of one JSON string. It is decoded only if it is needed.
"""

from __future__ import annotations

import re

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.edits import replace
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.streams import Chunk, DeltaRun
from dragoman.adapters.text_buffer import CharacterCount

__all__ = ["ChunkTemplate"]

_TRIAL = "\x00 trial"
_HEAD, _TAIL = b"data: ", b"\n\n"  # of an event without a name
_LAST, _FIRST = 1, 2  # bytes of two events around the blank line: `split` is slow if the separator has over five
_NEVER_INSIDE = bytes(range(0x20)) + b'"\\'
_INSIDE = re.compile(
    rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}))*+'
)
"""Matches what may be between the quotes of a JSON string, except escaped surrogates, which the JSON parser handles.

It matches several texts joined by spaces only if it matches each of them, because no escape contains a space."""


class ChunkTemplate:
    """The bytes before and after the text of a chunk, and the chunk in hub form."""

    __slots__ = (
        "_after",
        "_before",
        "_begin",
        "_between",
        "_body",
        "_cut",
        "_from",
        "_head",
        "_length",
        "_place",
        "_same",
        "_separator",
        "_slice",
        "_tail",
    )

    def __init__(self, before: bytes, after: bytes, body: JsonObject, same: bool, place: Path, begin: bytes) -> None:
        self._before, self._after, self._begin = before, after, begin
        self._head, self._tail = begin + before, after + _TAIL
        self._between = self._tail + self._head  # two texts
        self._separator = after[-_LAST:] + _TAIL + begin[:_FIRST]
        self._slice = slice(len(self._head) - _FIRST, _LAST - len(after))  # of a part between two separators
        self._from, self._cut = len(before) - 1, 1 - len(after)  # the quotes are the string's
        self._body = body
        self._same = same
        self._place = place
        self._length = CharacterCount()  # of the texts that matched: short streams never need it

    @classmethod
    def learn(cls, body: JsonObject, raw: bytes, same: bool, path: Path, begin: bytes = _HEAD) -> ChunkTemplate | None:
        """Make the template of a chunk of text; None if the chunk has no text, or its text cannot be replaced.

        `body` is the chunk in hub form, `raw` the JSON that it was read from; `same`: normalizing changed nothing.
        `path` leads to the text in both. `begin` are the lines of its event before the JSON.
        """
        said = lookup(body, path)
        if type(said) is not str:
            return None
        text = orjson.dumps(said)
        at = raw.rfind(text)
        if at < 0:
            return None
        before, after = raw[: at + 1], raw[at + len(text) - 1 :]
        wanted = orjson.loads(raw)
        if lookup(wanted, path) != said:
            return None
        try:
            tried = orjson.loads(before + orjson.dumps(_TRIAL)[1:-1] + after)
        except orjson.JSONDecodeError:  # the text was found outside a string, as `": "` between a key and its value
            return None
        replace(wanted, path, _TRIAL)
        return cls(before, after, body, same, path, begin) if tried == wanted else None

    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in the data of one event; None if the bytes do not match."""
        if not (raw.startswith(self._before) and raw.endswith(self._after)):
            return None
        try:
            text = orjson.loads(raw[self._from : self._cut or None])
        except orjson.JSONDecodeError:
            return None
        self._length.add(text)
        body = self._body.copy()
        replace(body, self._place, text)
        return Chunk(body, raw if self._same else None)

    def match_run(self, data: bytes, at: int) -> tuple[DeltaRun, int] | None:
        """The run of matching events that begins at the offset `at`, and the offset after it; None if there is none."""
        head, tail = self._head, self._tail
        if not data.startswith(head, at):
            return None
        start = at + len(head)
        stop = data.rfind(tail, start)
        if stop >= 0:
            end, inside = stop + len(tail), data[start:stop]
            if b"\n" not in inside:  # one event
                if _INSIDE.fullmatch(inside):
                    return self._make_run(data[at:end], [inside], end)
            else:  # mostly every event of a read matches, but the last one is cut off
                found = self._split_alike(data, at, end)
                if self._between.join(found) == inside and _are_inside_strings(found):
                    return self._make_run(data[at:end], found, end)
        texts = self._match_texts(self._split(data, at))
        if not texts:
            return None
        end = at + len(texts) * (len(head) + len(tail)) + sum(map(len, texts))
        return self._make_run(data[at:end], texts, end)

    def take_count(self) -> tuple[int, int, str]:
        """The index of the choice, how many characters of it matched since this was last asked, and their key."""
        count, self._length = self._length.total(), CharacterCount()
        return self._body["choices"][0]["index"], count, str(self._place[-1])

    def _split_alike(self, data: bytes, at: int, end: int) -> list[bytes]:
        """The texts of the events in `data[at:end]`, if only their texts differ; else something else."""
        place = self._slice
        return [part[place] for part in data[at + _FIRST : end - len(_TAIL) - _LAST].split(self._separator)]

    def _split(self, data: bytes, at: int) -> list[bytes]:
        """The JSON of each event from the offset `at` on that ends in `data`."""
        *blocks, last = data[at + len(self._begin) :].split(_TAIL + self._begin)
        return [*blocks, last[: -len(_TAIL)]] if last.endswith(_TAIL) else blocks

    def _match_texts(self, blocks: list[bytes]) -> list[bytes]:
        """The texts of the leading blocks that match, none if one is not the inside of a JSON string."""
        before, after = self._before, self._after
        start, end = len(before), -len(after)
        texts = []
        for block in blocks:
            if not (block.startswith(before) and block.endswith(after, start)):
                break
            texts.append(block[start:end])
        return texts if _are_inside_strings(texts) else []

    def _make_run(self, data: bytes, texts: list[bytes], end: int) -> tuple[DeltaRun, int] | None:
        """The run of these texts, and `end`; None if `data`, the events, is not UTF-8."""
        if not data.isascii() and not _is_utf8(data):
            return None
        self._length.add_fragments(texts)
        return DeltaRun(self._body, self._place, texts, data if self._same else None), end


def _are_inside_strings(texts: list[bytes]) -> bool:
    """Whether each of the texts may be between the quotes of a JSON string."""
    joined = texts[0] if len(texts) == 1 else b" ".join(texts)
    return len(joined.translate(None, _NEVER_INSIDE)) == len(joined) or _INSIDE.fullmatch(joined) is not None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
