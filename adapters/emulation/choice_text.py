"""The text of a choice in chat and completions, whole or in pieces, and its log probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path

__all__ = ["CHAT", "COMPLETIONS", "ChoiceText", "count_tokens", "split_logprobs"]


class ChoiceText(NamedTuple):
    """Where a protocol has the text of a choice.

    `whole` is the key of the object that holds it in a reply, `piece` in a chunk; both are empty if the choice itself
    does. `key` is the text's key, `calls` are the keys of what can only follow it. `stop` is the key of a choice that
    names the stop string that ended it, empty if there is none.
    """

    whole: str
    piece: str
    key: str
    calls: tuple[str, ...] = ()
    stop: str = ""

    @property
    def place(self) -> Path:
        """The path of the text in the chunk of a run."""
        return ("choices", 0, self.piece, self.key) if self.piece else ("choices", 0, self.key)

    def read(self, choice: JsonObject, holder: str) -> str:
        """Return the text of a choice; `holder` is `whole` or `piece`."""
        text = (choice[holder] if holder else choice).get(self.key)
        return text if isinstance(text, str) else ""

    def replace(self, choice: JsonObject, holder: str, text: str, *, with_calls: bool = True) -> JsonObject:
        """Return a copy of the choice with this text; without `with_calls`, also without what can only follow it."""
        if not holder:
            return {**choice, self.key: text}
        kept = {key: value for key, value in choice[holder].items() if with_calls or key not in self.calls}
        return {**choice, holder: {**kept, self.key: text}}

    def make_piece(self, index: int, text: str = "") -> JsonObject:
        """Return a choice of a chunk with this text."""
        if not self.piece:
            return {"index": index, "text": text, "logprobs": None, "finish_reason": None}
        return {"index": index, self.piece: {self.key: text} if text else {}, "finish_reason": None}

    def make_ending(self, stop: str | None) -> JsonObject:
        """Return the keys of a choice that a stop string has ended."""
        return {"finish_reason": "stop", **({self.stop: stop} if self.stop else {})}

    def says_more(self, choice: JsonObject) -> bool:
        """Whether the choice of a chunk has anything besides text and role."""
        return (
            any(value for key, value in choice[self.piece].items() if key not in (self.key, "role"))
            if (self.piece)
            else False
        )

    def has_calls(self, choice: JsonObject, holder: str) -> bool:
        """Whether the choice has anything that can only follow its text."""
        return any(choice[holder].get(key) for key in self.calls) if holder else False


CHAT = ChoiceText("message", "delta", "content", ("tool_calls", "function_call"), "stop_sequence")
COMPLETIONS = ChoiceText("", "", "text")


def count_tokens(logprobs: JsonObject, size: int) -> tuple[int, int]:
    """Count the leading tokens that lie in the first `size` characters, and their characters."""
    count = total = 0
    for token in _list_tokens(logprobs):
        if total + len(token) > size:
            break
        count, total = count + 1, total + len(token)
    return count, total


def split_logprobs(logprobs: JsonObject, count: int) -> tuple[JsonObject, JsonObject]:
    """Split log probabilities after this many tokens. A list of another length belongs to another text, and stays in
    the first half."""
    length = len(_list_tokens(logprobs))
    lists = [key for key, value in logprobs.items() if isinstance(value, list) and len(value) == length]
    head = {key: value[:count] if key in lists else value for key, value in logprobs.items()}
    return head, {key: logprobs[key][count:] for key in lists}


def _list_tokens(logprobs: JsonObject) -> list[str]:
    """The tokens with log probabilities, in chat's form or in that of completions."""
    found: Any = logprobs.get("content") or logprobs.get("tokens") or []
    return [str(one.get("token", "")) if isinstance(one, dict) else str(one) for one in found]
