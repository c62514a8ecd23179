"""Translates a chat stream to a completions stream, in hub form.

Theory of operation. Each chunk becomes one chunk, whose choices have the text of the deltas. Choices with neither text
nor finish reason are removed, and so is a chunk without choices. The chunk with the usage and the terminal are passed
on.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.streams import Chunk, Output

from .prompts import to_text_choice, to_text_envelope

__all__ = ["ChatToCompletions"]


class ChatToCompletions(StreamTranslatorBase):
    """Hub chat outputs in, hub completions outputs out."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx
        self._held: JsonObject = {}

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        choices = [to_text_choice(choice, "delta", self._ctx) for choice in body["choices"]]
        said = [choice for choice in choices if choice["text"] or choice["finish_reason"]]
        envelope = to_text_envelope(body, self._ctx)
        for key in [key for key, value in self._held.items() if envelope.get(key, value) != value and key != "choices"]:
            self._ctx.receipt.record_drop((key,), "the next chunk has another value")
        made = {**self._held, **envelope, "choices": said}
        if not said and not made.get("usage"):
            self._held = made  # the next chunk has what this one says
            return []
        self._held = {}
        return [Chunk(made)]
