"""Reading a provider's whole completions reply, and its stream, into hub form."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.chat.reply import Form, mend_finish, read_whole
from dragoman.adapters.chat.stream import ChatReader
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.faults import Fault

from .chunk_normalizer import TextMender

__all__ = ["WORDS", "CompletionsReader", "read_text"]

WORDS = frozenset({"stop", "length", "content_filter"})
"""The hub's finish reasons."""


class CompletionsReader(ChatReader):
    """`read_stream` of completions, for every dialect."""

    mender = TextMender


def read_text(reply: Reply, reading: Reading, ctx: Context) -> JsonObject:
    """The reply in hub form, as the policy `replies` asks. Alters and returns `reply.body`. Raises Fault."""
    return read_whole(reply, reading, ctx, _TEXT)


def _mend_choice(body: JsonObject, choice: JsonObject, position: int, reading: Reading, ctx: Context) -> None:
    if "text" not in choice:
        text = f"the provider sent a reply that is not valid: choices[{position}] has no text"
        raise Fault("upstream_invalid_response", text, code="upstream_invalid_response")
    if choice["text"] is None:
        choice["text"] = ""
        ctx.receipt.filled(("choices", position, "text"), "the provider said null")
    mend_finish(body, choice, position, reading, ctx)


_TEXT = Form("completions", "text_completion", "cmpl", _mend_choice)
