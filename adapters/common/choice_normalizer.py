"""The base class of choice normalizers, which bring the choices of chat and completions into hub form.

One class normalizes whole replies and streams. A protocol's subclass normalizes what a choice holds, whole or in
pieces. The envelope and the finish reason are the same for all protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.counts import is_time
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from .finish_words import has_finished
from .reply_rules import ReplyRules
from .stream_changes import ChangeRecorder

__all__ = ["ENVELOPE", "ChoiceNormalizer"]

ENVELOPE = ("id", "object", "created", "model")


class ChoiceNormalizer(ABC):
    """The normalizer of one reply or of one stream.

    A subclass sets `protocol`; `reply_object` and `chunk_object`, the `object` of replies and chunks; `id_prefix`, the
    prefix of generated ids; `text`, the path of a piece's text inside its choice; `ends_apart`, whether a finish reason
    that comes with text is sent in a chunk of its own; and `settled`, the schema of whole replies that need no
    normalizing, if there is one.
    """

    protocol: ClassVar[str]
    reply_object: ClassVar[str]
    chunk_object: ClassVar[str]
    id_prefix: ClassVar[str]
    ends_apart: ClassVar[bool]
    settled: ClassVar[str | None] = None

    def __init__(self, rules: ReplyRules, ctx: Context, changes: ChangeRecorder) -> None:
        self._rules = rules
        self._ctx = ctx
        self._changes = changes

    @staticmethod
    def fill_answer(choice: JsonObject, position: int, ctx: Context) -> None:
        """Fill in place what a choice of a whole reply lacks for a known reason, under every policy."""
        return

    @staticmethod
    @abstractmethod
    def check_answer(choice: JsonObject, position: int) -> None:
        """Check what a choice of a whole reply must hold under every policy. Raises Fault."""

    @abstractmethod
    def normalize_whole(self, body: JsonObject, choice: JsonObject, position: int) -> None:
        """Normalize a choice of a whole reply in place; `position` is its index in `choices`.

        Raises Fault if the choice is incomplete, or its finish reason reports a failure.
        """

    @abstractmethod
    def normalize_piece(self, body: JsonObject, choice: JsonObject, index: int) -> bool:
        """Normalize a choice of a chunk in place. Returns True if nothing changed.

        Raises Fault if the choice cannot be normalized, or its finish reason reports a failure.
        """

    def count_text(self, index: int, length: int, key: str) -> None:
        """Learn how many characters of text came in chunks of the choice `index` that needed no normalizing; `key` is
        the key of the text."""
        return

    @staticmethod
    @abstractmethod
    def has_content(choice: JsonObject) -> bool:
        """Whether a piece holds anything but a role and a finish reason; it need not be normalized."""

    @abstractmethod
    def find_text(self, choice: JsonObject) -> tuple[str, ...] | None:
        """The path of the text in a normalized piece, if the next piece is likely to differ from it only in this text;
        else None."""

    @abstractmethod
    def split_ending(self, choice: JsonObject) -> JsonObject:
        """Move the finish reason of a piece out of it. Returns a choice that holds it, and no text."""

    def finish_choice(self, choice: JsonObject) -> bool:
        """Make the finish reason of a choice agree with what the choice has said. Returns True if nothing changed.

        `choice` is its last piece in hub form. Text that the choice still has to say is added to it.
        """
        return True

    def make_envelope(self, body: JsonObject, kind: str) -> JsonObject:
        """`id`, `object`, `created` (seconds since 1970) and `model`: the provider's values, or generated ones.

        `kind` is the `object`.
        """
        created = body.get("created")
        if not isinstance(created, int):
            created = int(created) if is_time(created) else int(self._ctx.clock())
        return {
            "id": body.get("id") or self._ctx.new_id(self.id_prefix),
            "object": kind,
            "created": created,
            "model": body.get("model") or self._ctx.target.model,
        }

    def read_finish_reason(self, body: JsonObject, choice: JsonObject, path: Path) -> bool:
        """Normalize the finish reason of a piece, null if the choice goes on. Returns True if nothing changed.

        Raises Fault as `set_finish_reason` does.
        """
        native = choice.get("finish_reason")
        if has_finished(native):
            return self.set_finish_reason(body, choice, path) == native
        if native is not None:
            self._changes.record_conversion((*path, "finish_reason"), f"the choice goes on: {native!r} reads null")
        same = native is None and "finish_reason" in choice
        choice["finish_reason"] = None
        return same

    def set_finish_reason(self, body: JsonObject, choice: JsonObject, path: Path) -> str:
        """Replace the provider's finish reason with the hub's, and return it.

        Raises Fault if the finish reason reports a failure, or if nobody knows it and the policy is `strict`.
        """
        native = choice["finish_reason"]
        word = self._rules.finish_reason(body, choice, self._ctx)
        path = (*path, "finish_reason")
        if word is None:
            self._report_unknown(str(native), path)
            word = "stop"
        if word != native:
            choice.update(finish_reason=word, native_finish_reason=native)
            self._changes.record_conversion(path, f"finish reason {native!r} reads {word!r}")
        return word

    def _report_unknown(self, native: str, path: Path) -> None:
        if self._ctx.target.policy.replies == "strict":
            text = f"the provider ended the answer with an unknown finish reason: {native[:100]!r}"
            raise Fault("upstream_invalid_response", text, code="upstream_invalid_finish_reason", provider_code=native)
        self._changes.record_conversion(path, f"nobody knows what the finish reason {native[:100]!r} means", "loss")
