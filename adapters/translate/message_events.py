"""The events of a Messages stream, and the content block that is open in one.

Source: anthropic 2.12.0, RawMessageStreamEvent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun, Output

__all__ = ["SIGNATURE", "TEXT", "THINKING", "TOOL_INPUT", "DeltaKind", "OpenBlock"]


class DeltaKind(NamedTuple):
    """A type of delta. `key` is the key of its text."""

    type: str
    key: str


TEXT = DeltaKind("text_delta", "text")
THINKING = DeltaKind("thinking_delta", "thinking")
SIGNATURE = DeltaKind("signature_delta", "signature")
TOOL_INPUT = DeltaKind("input_json_delta", "partial_json")


class OpenBlock:
    """A content block whose deltas are of one kind. `has_text`: one of them has come; `is_done`: it takes no more."""

    __slots__ = ("_event", "_place", "has_text", "index", "is_done", "kind")

    def __init__(self, block: JsonObject, kind: DeltaKind, index: int, out: list[Output]) -> None:
        self.kind = kind
        self.index = index
        self.has_text = False
        self.is_done = False
        self._place: Path = ("delta", kind.key)
        self._event = _make_delta(index, kind.type, kind.key, "")  # the same object for all runs
        out.append(Chunk({"type": "content_block_start", "index": index, "content_block": block}))

    def write(self, text: str, out: list[Output]) -> None:
        """Append the event of a piece of text."""
        self.has_text = True
        out.append(Chunk(_make_delta(self.index, self.kind.type, self.kind.key, text)))

    def write_run(self, run: DeltaRun) -> list[Output]:
        """The run of texts as one run of events. Empty texts are left out."""
        texts = run.texts if all(run.texts) else [text for text in run.texts if text]
        self.has_text = self.has_text or bool(texts)
        return [DeltaRun(self._event, self._place, texts)] if texts else []

    def sign(self, signature: str, out: list[Output]) -> None:
        """Append the event of the signature, after which no text comes."""
        self.is_done = True
        out.append(Chunk(_make_delta(self.index, SIGNATURE.type, SIGNATURE.key, signature)))

    def cite(self, citation: JsonObject, out: list[Output]) -> None:
        """Append the event of a citation of the text."""
        out.append(Chunk(_make_delta(self.index, "citations_delta", "citation", citation)))

    def close(self, out: list[Output]) -> None:
        """Append the event that closes the block."""
        out.append(Chunk({"type": "content_block_stop", "index": self.index}))


def _make_delta(index: int, kind: str, key: str, value: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}
