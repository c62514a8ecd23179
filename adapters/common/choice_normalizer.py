"""Bringing the choices of one answer into hub form: what chat and completions share.

The same normalizer serves a whole reply and a stream. A protocol says what is in a choice, as a whole and as a piece;
the envelope, the finish reason and the last repair are the same for both forms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.counts import is_time
from dragoman.adapters.paths import Path

from .reply_rules import ReplyRules
from .stream_changes import ChangeRecorder

__all__ = ["ENVELOPE", "ChoiceNormalizer"]

ENVELOPE = ("id", "object", "created", "model")


class ChoiceNormalizer(ABC):
    """A subclass names its protocol: `reply_object` and `chunk_object` are the `object` of its replies and chunks,
    `id_prefix` begins an id that the provider left out, `text` is the path of a piece's text inside its choice."""

    protocol: ClassVar[str]
    reply_object: ClassVar[str]
    chunk_object: ClassVar[str]
    id_prefix: ClassVar[str]
    text: ClassVar[tuple[str, ...]]

    def __init__(self, rules: ReplyRules, ctx: Context, changes: ChangeRecorder) -> None:
        self._rules = rules
        self._ctx = ctx
        self._changes = changes

    @abstractmethod
    def normalize_whole(self, body: JsonObject, choice: JsonObject, position: int) -> None:
        """Alter a choice of a whole reply. Raises Fault."""

    @abstractmethod
    def normalize_piece(self, body: JsonObject, choice: JsonObject, index: int) -> bool:
        """Alter a choice of a chunk; True if it was left as it came. Raises Fault."""

    @abstractmethod
    def is_only_text(self, choice: JsonObject) -> bool:
        """True for a normalized piece that holds nothing but its text that the next piece might lack."""

    def split_endings(self, body: JsonObject) -> list[JsonObject]:
        """The choices of another chunk, for finish reasons that this one should not hold; they are taken out of it."""
        return []

    def make_envelope(self, body: JsonObject, kind: str) -> JsonObject:
        """`id`, `object`, `created` and `model` as the provider gave them, or new ones."""
        created = body.get("created")
        if not isinstance(created, int):
            created = int(created) if is_time(created) else int(self._ctx.clock())
        return {
            "id": body.get("id") or self._ctx.new_id(self.id_prefix),
            "object": kind,
            "created": created,
            "model": body.get("model") or self._ctx.target.model,
        }

    def set_finish_reason(self, body: JsonObject, choice: JsonObject, path: Path, *, called: bool = False) -> str:
        """Put the hub's word for it in place of the provider's finish reason; `called` says that the choice has tool
        calls. Returns the word. Raises Fault."""
        native = choice["finish_reason"]
        word = self._rules.finish_reason(body, choice, self._ctx)
        if word == "stop" and called:
            word = "tool_calls"
        if word != native:
            choice.update(finish_reason=word, native_finish_reason=native)
            self._changes.record_conversion((*path, "finish_reason"), f"finish reason {native!r} reads {word!r}")
        return word
