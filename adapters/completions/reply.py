"""Reading a provider's completions reply, and its stream, into hub form."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.choice_reply import read_choices
from dragoman.adapters.common.choice_stream import ChoiceStreamReader
from dragoman.adapters.common.reply_rules import ReplyRules

from .normalizer import TextNormalizer
from .requests import count_choices

__all__ = ["FINISH_REASONS", "CompletionsStreamReader", "read_completions_reply"]

FINISH_REASONS = frozenset({"stop", "length", "content_filter"})
"""The hub's own."""


class CompletionsStreamReader(ChoiceStreamReader):
    """`read_stream` of completions, for every dialect."""

    protocol = TextNormalizer

    def choices_per_prompt(self, request: JsonObject) -> int | None:
        return count_choices(request)


def read_completions_reply(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """The reply in hub form, as the policy `replies` asks. Alters and returns `reply.body`. Raises Fault."""
    return read_choices(reply, rules, ctx, TextNormalizer)
