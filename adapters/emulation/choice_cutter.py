"""Cuts one choice of a stream at its first stop string."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.choice_assembly import merge_lists

from .choice_text import ChoiceText, count_tokens, split_logprobs
from .stop_scanner import StopScanner

__all__ = ["ChoiceCutter"]


class ChoiceCutter:
    """Takes the pieces of one choice and returns those that go out. `has_ended`: the choice has its finish reason;
    `was_cut`: it has that of a stop string."""

    def __init__(self, index: int, scanner: StopScanner, shape: ChoiceText) -> None:
        self._index = index
        self._scanner = scanner
        self._shape = shape
        self._logprobs: JsonObject | None = None  # of the text that is held back
        self._ahead = 0  # characters that are passed on without their token, which reaches into the held text
        self.has_ended = False
        self.was_cut = False

    def cut(self, choice: JsonObject) -> list[JsonObject]:
        """The choices of the chunks that take the place of a chunk with this one."""
        if self.was_cut:
            return []
        shape = self._shape
        text = shape.read(choice, shape.piece)
        out = self._scanner.feed(text) if text else ""
        if self._scanner.has_stopped:
            kept = shape.replace({**choice, "finish_reason": None}, shape.piece, out, with_calls=False)
            return [self._move_logprobs(kept, out), self._end()]
        self.has_ended = choice["finish_reason"] is not None
        follows = self.has_ended or shape.has_calls(choice, shape.piece)
        if follows or (not text and shape.says_more(choice)):
            out += self._scanner.flush()
        if out == text and self._logprobs is None and not self._ahead:
            return [choice]
        if text:
            return [self._move_logprobs(shape.replace(choice, shape.piece, out), out, is_last=follows)]
        return [*self._make_held(out), choice]

    def cut_text(self, text: str) -> tuple[str, list[JsonObject]]:
        """The text that goes out for a text that comes alone, and the choices that follow it."""
        if self.was_cut:
            return "", []
        out = self._scanner.feed(text)
        return out, [self._end()] if self._scanner.has_stopped else []

    def flush(self) -> list[JsonObject]:
        """The choice with the text that is held back; none if there is none."""
        return [] if self.was_cut else self._make_held(self._scanner.flush())

    def _end(self) -> JsonObject:
        self.was_cut = self.has_ended = True
        return {**self._shape.make_piece(self._index), **self._shape.make_ending(self._scanner.stop)}

    def _make_held(self, text: str) -> list[JsonObject]:
        if not text:
            return []
        return [self._move_logprobs(self._shape.make_piece(self._index, text), text, is_last=True)]

    def _move_logprobs(self, choice: JsonObject, text: str, *, is_last: bool = False) -> JsonObject:
        """Return the choice with the log probabilities of the tokens that its text completes. The others wait for the
        rest of their text."""
        given = choice.get("logprobs")
        if given is None and self._logprobs is None:
            return choice
        merged = merge_lists(self._logprobs, given or {})
        size = self._ahead + len(text)
        count, total = count_tokens(merged, size)
        head, rest = (merged, None) if is_last else split_logprobs(merged, count)
        self._logprobs, self._ahead = rest, 0 if is_last else size - total
        return {**choice, "logprobs": head}
