"""Brings a completions choice into hub form, whole or a piece: a text and its log probabilities."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.choice_normalizer import ChoiceNormalizer
from dragoman.adapters.common.completeness import check_finish_reason
from dragoman.adapters.common.finish_words import has_finished
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

__all__ = ["TextNormalizer"]

_KEYS = frozenset({"index", "text", "logprobs", "finish_reason"})


class TextNormalizer(ChoiceNormalizer):
    """The ChoiceNormalizer of completions, for every dialect."""

    protocol = "completions"
    reply_object = "text_completion"
    chunk_object = "text_completion"
    id_prefix = "cmpl"
    ends_apart = False

    @staticmethod
    def check_answer(choice: JsonObject, position: int) -> None:
        """Check nothing: under `off` a text may be missing, as servers leave out an empty one."""

    def normalize_whole(self, body: JsonObject, choice: JsonObject, position: int) -> None:
        """Normalize the text and the finish reason. Raises Fault if either is missing."""
        if "text" not in choice:
            raise invalid_reply(f"choices[{position}] has no text")
        path: Path = ("choices", position)
        self._set_text(choice, path)
        check_finish_reason(choice)
        self.set_finish_reason(body, choice, path)

    def normalize_piece(self, body: JsonObject, choice: JsonObject, index: int) -> bool:
        """Normalize the text and the finish reason; True if nothing changed. Raises Fault if both are missing."""
        same = choice.keys() >= _KEYS
        if not same:
            _fill_keys(choice)
        path: Path = ("choices", index)
        same &= self._set_text(choice, path)
        return self.read_finish_reason(body, choice, path) and same

    @staticmethod
    def has_content(choice: JsonObject) -> bool:
        """Whether the text is not empty."""
        return bool(choice.get("text"))

    def find_text(self, choice: JsonObject) -> tuple[str, ...] | None:
        """The path of the text, if no finish reason comes with it."""
        return None if choice.get("finish_reason") else ("text",)

    def split_ending(self, choice: JsonObject) -> JsonObject:
        """Move the finish reason of a piece to a choice with an empty text, and return that."""
        ending = {**choice, "text": "", "logprobs": None}
        choice["finish_reason"] = None
        choice.pop("native_finish_reason", None)
        return ending

    def _set_text(self, choice: JsonObject, path: Path) -> bool:
        if choice["text"] is not None:
            return True
        choice["text"] = ""
        self._changes.record_fill((*path, "text"), "the provider sent null")
        return False


def _fill_keys(choice: JsonObject) -> None:
    if "text" not in choice and not has_finished(choice.get("finish_reason")):
        message = f"the provider sent an event without text in choice {choice['index']}"
        raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
    for name, nothing in (("text", ""), ("logprobs", None), ("finish_reason", None)):
        choice.setdefault(name, nothing)
