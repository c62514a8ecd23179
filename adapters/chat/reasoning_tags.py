"""Splits a text into the reasoning between tags, with which it begins, and the answer after them.

Theory of operation. The text passes four states, in this order:

    begin      white space, and perhaps a part of an opening tag, is held until it is clear what it is
    thought    the text is reasoning; what may be a part of the closing tag is held
    gap        white space after the closing tag is left out
    answer     the text passes unchanged, whatever tags it holds

Without an opening tag the text is an answer. If the opening tag is *implied*, because the model's template has written
it already, the text is reasoning up to any closing tag. A thought without a closing tag reaches to the end. White space
around the thought is left out, up to a bound. The result does not depend on how the text is cut into pieces.

Tags: DeepSeek-R1, Qwen3 and many others; gpt-oss (Harmony); Magistral; Seed-OSS; Kimi-VL; Gemini's OpenAI API.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from dragoman.adapters.call import JsonObject

__all__ = ["TagSplitter", "split_delta", "split_message", "split_tags"]

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}
_MOST_SPACE = 64  # before the opening tag
_SPACE = r"\s{0,8}"  # before the closing tag


def _match_part(tag: str) -> str:
    """A pattern of the beginnings of a tag, the empty one included."""
    pattern = ""
    for letter in reversed(tag[:-1]):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


@cache
def _match_end(*tags: str) -> re.Pattern[str]:
    """A pattern of the first of these closing tags, or of what may become one at the end of the text."""
    whole = "|".join(map(re.escape, tags))
    parts = "|".join(map(_match_part, tags))
    return re.compile(rf"{_SPACE}(?:(?P<tag>{whole})|(?:{parts})\Z)")


class TagSplitter:
    """Splits one text that arrives in pieces. `implied`: it begins inside the thought."""

    __slots__ = ("_end", "_held", "_implied", "_is_fresh", "_read")

    _end: re.Pattern[str]  # of the thought that has begun
    _read: Callable[[TagSplitter, str], tuple[str, str]]

    def __init__(self, *, implied: bool) -> None:
        self._implied = implied
        self._held = ""
        self._is_fresh = True  # the thought has no text yet
        self._read = TagSplitter._read_begin  # a bound method would be a cycle of references

    @property
    def is_passing(self) -> bool:
        """Whether all further text is answer."""
        return self._read is TagSplitter._read_answer

    def feed(self, text: str) -> tuple[str, str]:
        """The reasoning and the answer that this piece completes."""
        return self._read(self, text)

    def close(self) -> tuple[str, str]:
        """The reasoning and the answer that were held. Further text is answer."""
        held, self._held = self._held, ""
        is_thought = self._read is TagSplitter._read_thought
        self._read = TagSplitter._read_answer
        return (held, "") if is_thought else ("", held)

    def _read_begin(self, text: str) -> tuple[str, str]:
        self._held += text
        said = self._held.lstrip()
        has_much_space = len(self._held) - len(said) > _MOST_SPACE
        opening = next((tag for tag in _TAGS if said.startswith(tag)), None)
        if opening is not None and not has_much_space:
            return self._begin_thought(said[len(opening) :], _match_end(_TAGS[opening]))
        if not has_much_space and any(tag.startswith(said) for tag in _TAGS):
            return "", ""
        if self._implied:
            return self._begin_thought(said, _match_end(*_TAGS.values()))
        self._read = TagSplitter._read_answer
        return self.close()

    def _begin_thought(self, rest: str, end: re.Pattern[str]) -> tuple[str, str]:
        self._held, self._end, self._read = "", end, TagSplitter._read_thought
        return self._read(self, rest)

    def _read_thought(self, text: str) -> tuple[str, str]:
        text = self._held + text
        if self._is_fresh:
            text = text.lstrip()
        found = self._end.search(text)
        at = len(text) if found is None else found.start()
        thought, self._held = text[:at], text[at:]
        self._is_fresh &= not thought
        if found is None or found["tag"] is None:
            return thought, ""
        self._held, self._read = "", TagSplitter._read_gap
        return thought, self._read(self, text[found.end() :])[1]

    def _read_gap(self, text: str) -> tuple[str, str]:
        text = text.lstrip()
        if text:
            self._read = TagSplitter._read_answer
        return "", text

    def _read_answer(self, text: str) -> tuple[str, str]:
        return "", text


def split_tags(text: str, *, implied: bool) -> tuple[str, str]:
    """The reasoning and the answer of a whole text; without tags, the answer is the text itself."""
    splitter = TagSplitter(implied=implied)
    pairs = (splitter.feed(text), splitter.close())
    return "".join(thought for thought, _ in pairs), "".join(answer for _, answer in pairs)


def split_message(message: JsonObject, *, implied: bool) -> bool:
    """Split the content of a whole message in place. Returns True if anything changed."""
    text = message.get("content")
    if not isinstance(text, str):
        return False
    thought, answer = split_tags(text, implied=implied)
    if answer == text:
        return False
    message["content"] = answer or None
    _add_thought(message, thought)
    return True


def split_delta(delta: JsonObject, splitter: TagSplitter, *, is_last: bool) -> bool:
    """Split the content of a delta in place; the last one gets what was held. Returns True if anything changed."""
    text = delta.get("content")
    given = text if isinstance(text, str) else ""
    thought, answer = splitter.feed(given) if given else ("", "")
    if is_last:
        late_thought, late_answer = splitter.close()
        thought, answer = thought + late_thought, answer + late_answer
    if answer == given and not thought:
        return False
    delta.pop("content", None)
    if answer:
        delta["content"] = answer
    _add_thought(delta, thought)
    return True


def _add_thought(holder: JsonObject, thought: str) -> None:
    if thought:
        holder["reasoning_content"] = (holder.get("reasoning_content") or "") + thought
