"""Holds the finish reasons of a stream back for one event, so that each choice ends once, after its last piece.

Theory of operation. A chunk with a finish reason is held until the next item of the stream shows what it was:

    the next item                                  what goes out
    ---------------------------------------------  ----------------------------------------------------------------
    a chunk of other choices, or the end           the held chunk, then what came
    more of a choice that is held                  the text; the finish reasons become one, which stays held
    more of a choice whose finish reason was sent  the text; another finish reason is removed
    a fault                                        the fault alone: an answer that failed did not end

Of several finish reasons of a choice the first one that says more than `stop` counts. When a chunk is released, the
protocol makes the finish reason agree with what the choice has said (`ChoiceNormalizer.finish_choice`). If the text of
a choice comes with its finish reason, the protocol decides whether the two are sent apart (`ends_apart`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk

from .choice_normalizer import ENVELOPE, ChoiceNormalizer
from .stream_changes import StreamChanges

__all__ = ["EndingBuffer"]

_PLACE: Path = ("choices",)
_NONE: Mapping[int, str] = MappingProxyType({})  # shared by all streams
_REPEATED = "a choice ends once: repeated finish reasons are removed"
_FIRST_COUNTS = "the first that says more than 'stop' counts"
_SENT_COUNTS = "the first has been sent"
_LATE = "what comes after a finish reason is kept"
_SPOKEN = frozenset({"index", "delta", "text", "finish_reason", "native_finish_reason"})
"""The keys of a choice that `ChoiceNormalizer.has_content` judges, and those that say nothing after the end."""
_APART = "a finish reason comes after the last piece, in a chunk of its own"


class EndingBuffer:
    """The finish reasons of one stream. Takes and returns chunks in hub form; alters chunks in place."""

    def __init__(self, choices: ChoiceNormalizer, changes: StreamChanges) -> None:
        self._choices = choices
        self._changes = changes
        self._held: JsonObject | None = None
        self._raw: bytes | None = None  # the bytes of the held chunk, if it is as it arrived
        self._sent = _NONE  # by the index of a choice, the finish reason with which it has ended

    @property
    def is_empty(self) -> bool:
        """Whether no chunk is held."""
        return self._held is None

    def add(self, body: JsonObject, raw: bytes | None) -> list[Chunk]:
        """The chunks that go out when this one comes; `raw` is its JSON if it is unchanged."""
        out: list[Chunk] = []
        if self._held is not None or self._sent:
            out = self._make_way(body)
            if self._take_repeats(body, out):
                raw = None
                if not body["choices"]:
                    return out
        if all(choice["finish_reason"] is None for choice in body["choices"]):
            return [*out, Chunk(body, raw)]
        ending = self._split(body) if self._choices.ends_apart else self._split_others(body)
        if ending is not None:
            out.append(Chunk(body))
            body, raw = ending, None
        self._hold(body, raw)
        return out

    def release(self) -> list[Chunk]:
        """The held chunk, after what its choices have not said yet; nothing if none is held."""
        held, raw = self._held, self._raw
        if held is None:
            return []
        self._held = self._raw = None
        self._sent = {**self._sent, **{choice["index"]: choice["finish_reason"] for choice in held["choices"]}}
        same = [self._choices.finish_choice(choice) for choice in held["choices"]]
        ending = None if all(same) else self._split(held)
        return [Chunk(held, raw if all(same) else None)] + ([Chunk(ending)] if ending is not None else [])

    def _make_way(self, body: JsonObject) -> list[Chunk]:
        """The held chunk, if this one says no more about its choices."""
        held = self._find_held()
        return [] if any(choice["index"] in held for choice in body["choices"]) else self.release()

    def _hold(self, body: JsonObject, raw: bytes | None) -> None:
        if self._held is None:
            self._held, self._raw = body, raw
            return
        self._held["choices"] += body["choices"]
        self._raw = None
        for key, value in body.items():
            if self._held.setdefault(key, value) != value and key != "choices":
                self._changes.record_drop((key,), "the chunk of the first finish reason has another value")

    def _find_held(self) -> dict[int, JsonObject]:
        return {} if self._held is None else {choice["index"]: choice for choice in self._held["choices"]}

    def _take_repeats(self, body: JsonObject, out: list[Chunk]) -> bool:
        """Remove repeated finish reasons, and choices that say nothing else. Returns True if any choice had ended."""
        held = self._find_held()
        again = [choice for choice in body["choices"] if choice["index"] in held or choice["index"] in self._sent]
        if not again:
            return False
        self._send_held_text(out)
        held = self._find_held()
        for choice in again:
            self._take_finish_reason(choice, held.get(choice["index"]))
            if self._choices.has_content(choice) or any(choice[key] for key in choice.keys() - _SPOKEN):
                self._changes.record_conversion(_PLACE, _LATE)
            else:
                body["choices"].remove(choice)
        return True

    def _send_held_text(self, out: list[Chunk]) -> None:
        """Send the text that is held with a finish reason, because more text comes."""
        ending = None if self._held is None else self._split(self._held)
        if self._held is not None and ending is not None:
            out.append(Chunk(self._held))
            self._held, self._raw = ending, None

    def _take_finish_reason(self, choice: JsonObject, held: JsonObject | None) -> None:
        word, native = choice["finish_reason"], choice.pop("native_finish_reason", None)
        choice["finish_reason"] = None
        if word is None:
            return
        first = self._sent[choice["index"]] if held is None else held["finish_reason"]
        if first == word:
            self._changes.record_conversion(_PLACE, _REPEATED)
            return
        counts = _SENT_COUNTS if held is None else _FIRST_COUNTS
        self._changes.record_conversion(_PLACE, f"a choice ends with {first!r} and with {word!r}: {counts}", "loss")
        if held is not None and first == "stop":
            held["finish_reason"], self._raw = word, None
            held.pop("native_finish_reason", None)
            if native is not None:
                held["native_finish_reason"] = native

    def _split(self, body: JsonObject) -> JsonObject | None:
        """Move finish reasons that come with text into a second chunk, and return it; None if there are none."""
        endings = [
            self._choices.split_ending(choice)
            for choice in body["choices"]
            if choice["finish_reason"] is not None and self._choices.has_content(choice)
        ]
        return self._split_others(body, endings)

    def _split_others(self, body: JsonObject, apart: Sequence[JsonObject] = ()) -> JsonObject | None:
        """Move choices that have ended into a second chunk, with those in `apart`, if others go on; None if none is
        moved."""
        endings, others = [*apart], [choice for choice in body["choices"] if choice["finish_reason"] is None]
        if others:
            endings += [choice for choice in body["choices"] if choice["finish_reason"] is not None]
            body["choices"] = others
        if not endings:
            return None
        self._changes.record_conversion(_PLACE, _APART)
        envelope = {key: body[key] for key in ENVELOPE}
        return {**envelope, **({"usage": None} if "usage" in body else {}), "choices": endings}
