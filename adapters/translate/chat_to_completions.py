"""A chat stream as a completions stream, in hub form.

Theory of operation. Each chunk becomes one chunk, whose choices have the text of the deltas; choices that neither say
nor finish anything are left out, and so is a chunk that has none left. The chunk with the usage goes on as it is, the
End and a fault too. Completeness was decided by the reader of the chat stream.
"""

from __future__ import annotations

from dragoman.adapters.call import Context
from dragoman.adapters.streams import Chunk, Output, StreamTranslator

from .prompts import text_choice

__all__ = ["ChatToCompletions"]


class ChatToCompletions(StreamTranslator):
    """Hub chat outputs in, hub completions outputs out."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def feed(self, output: Output) -> list[Output]:
        """Take one output of the chat reader."""
        if not isinstance(output, Chunk):
            return [output]
        body = {key: value for key, value in output.body.items() if key != "service_tier"}
        choices = [text_choice(choice, "delta", self._ctx) for choice in body["choices"]]
        body["object"] = "text_completion"
        body["choices"] = [choice for choice in choices if choice["text"] or choice["finish_reason"]]
        return [Chunk(body)] if body["choices"] or body.get("usage") else []
