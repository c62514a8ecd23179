"""Mending the chunks of one completions stream, whose choices hold a text and its log probabilities."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.normalizer import Mender
from dragoman.adapters.common.completeness import ChoiceCompleteness
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.usage import UsageTally
from dragoman.adapters.faults import Fault

from .requests import choices_of

__all__ = ["TextMender"]


class TextMender(Mender):
    protocol = "completions"
    kind = "text_completion"
    prefix = "cmpl"
    text = ("text",)

    def __init__(self, reading: Reading, ctx: Context, completeness: ChoiceCompleteness) -> None:
        super().__init__(reading, ctx, completeness)
        self._seen: set[int] = set()

    def _tally(self, ctx: Context) -> UsageTally:
        return UsageTally(choices_of(ctx.request))

    def _is_text(self, choice: JsonObject) -> bool:
        return not choice.get("finish_reason")

    def _choice(self, body: JsonObject, choice: JsonObject) -> bool:
        same = choice.keys() >= {"index", "text", "logprobs", "finish_reason"}
        index = choice.setdefault("index", 0)
        if index not in self._seen:
            self._seen.add(index)
            self._completeness.see(index)
        if not same:
            self._complete(choice)
        return self._finish(body, choice) and same

    def _complete(self, choice: JsonObject) -> None:
        if "text" not in choice and not choice.get("finish_reason"):
            message = f"the provider sent an event without text in choice {choice['index']}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
        for name, nothing in (("text", ""), ("logprobs", None), ("finish_reason", None)):
            choice.setdefault(name, nothing)

    def _finish(self, body: JsonObject, choice: JsonObject) -> bool:
        same = choice["text"] is not None
        if not same:
            choice["text"] = ""
        native = choice["finish_reason"]
        if not native:
            choice["finish_reason"] = None
            return same and native is None
        word = self._reading.finish_reason(body, choice, self._ctx)
        self._completeness.finish(choice["index"])
        if word == native:
            return same
        choice.update(finish_reason=word, native_finish_reason=native)
        self._tell(f"finish reason {native!r} reads {word!r}")
        return False
