"""A chat stream as a completions stream, in hub form.

Theory of operation. Each chunk becomes one chunk, whose choices have the text of the deltas; choices that neither say
nor finish anything are left out, and so is a chunk that has none left. The chunk with the usage goes on as it is, the
terminal too.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.streams import Chunk, Output

from .prompts import to_text_choice

__all__ = ["ChatToCompletions"]


class ChatToCompletions(StreamTranslatorBase):
    """Hub chat outputs in, hub completions outputs out."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        body = {key: value for key, value in body.items() if key != "service_tier"}
        choices = [to_text_choice(choice, "delta", self._ctx) for choice in body["choices"]]
        body["object"] = "text_completion"
        body["choices"] = [choice for choice in choices if choice["text"] or choice["finish_reason"]]
        return [Chunk(body)] if body["choices"] or body.get("usage") else []
