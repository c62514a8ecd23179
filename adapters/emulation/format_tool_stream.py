"""A stream in which the call of the format's tool becomes the text of the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.adapters.text_buffer import TextBuffer

from .choice_text import CHAT

__all__ = ["NO_ANSWER", "SECOND_ANSWER", "FormatToolStream", "finish_choice"]

NO_ANSWER = "the model wrote a text besides the answer in the format"
SECOND_ANSWER = "the model gave several answers in the format, and the first one is the answer"
_CALLED = ("tool_calls", "function_call")


def finish_choice(choice: JsonObject, *, has_calls: bool) -> JsonObject:
    """The choice with the finish reason of a text, if it has no calls of the client's tools."""
    if has_calls or choice["finish_reason"] not in _CALLED:
        return choice
    return {**{key: value for key, value in choice.items() if key != "native_finish_reason"}, "finish_reason": "stop"}


@dataclass(slots=True)
class _Choice:
    """What was seen of one choice. `left_out` are the indexes of calls that the client does not get, the answer's
    first; `held` is text, which counts only if there is no answer."""

    left_out: list[int] = field(default_factory=list)
    held: TextBuffer = field(default_factory=TextBuffer)
    has_calls: bool = False


class FormatToolStream:
    """A StreamMerger. `name` is that of the format's tool; None if the request has none, and the stream stays."""

    def __init__(self, ctx: Context, name: str | None) -> None:
        self._receipt = ctx.receipt
        self._name = name
        self._choices: dict[int, _Choice] = {}

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs with the answer as text."""
        if self._name is None:
            return outputs
        return [made for output in outputs for made in self._convert(output)]

    def _convert(self, output: Output) -> list[Output]:
        if isinstance(output, DeltaRun):
            if output.place == CHAT.place:
                self._find(output.body["choices"][0]).held.add_fragments(output.texts)
                return []
            touched = "tool_calls" in output.place
            return [made for one in output.chunks() for made in self._convert(one)] if touched else [output]
        if not isinstance(output, Chunk) or not output.body["choices"]:
            return [output]
        choices = [made for choice in output.body["choices"] if (made := self._convert_choice(choice)) is not None]
        return [Chunk({**output.body, "choices": choices})] if choices else []

    def _find(self, choice: JsonObject) -> _Choice:
        return self._choices.setdefault(choice["index"], _Choice())

    def _convert_choice(self, choice: JsonObject) -> JsonObject | None:
        """The choice of a chunk with the answer as text; None if it says nothing."""
        known, delta = self._find(choice), dict(choice["delta"])
        if isinstance(text := delta.pop(CHAT.key, None), str):
            known.held.add(text)
        answer = self._take_calls(known, delta)
        if choice["finish_reason"] is not None and (held := known.held.text()):
            if known.left_out:
                self._receipt.record_drop(("choices", choice["index"], "message", "content"), NO_ANSWER)
            else:
                answer = held
        if answer:
            delta[CHAT.key] = answer
        if not delta and choice["finish_reason"] is None:
            return None
        return finish_choice({**choice, "delta": delta}, has_calls=known.has_calls)

    def _take_calls(self, known: _Choice, delta: JsonObject) -> str:
        """Take the format's calls out of a delta. Returns the text of the answer."""
        answer, own = "", []
        for call in delta.pop("tool_calls", None) or ():
            function: dict[str, Any] = call.get("function") or {}
            index = call["index"]
            if function.get("name") == self._name and index not in known.left_out:
                known.left_out.append(index)
                if len(known.left_out) > 1:
                    self._receipt.record_drop(("choices",), SECOND_ANSWER)
            if index in known.left_out:
                answer += function.get("arguments") or "" if index == known.left_out[0] else ""
            else:
                own.append({**call, "index": index - sum(one < index for one in known.left_out)})
        if own:
            delta["tool_calls"], known.has_calls = own, True
        return answer
