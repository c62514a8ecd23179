"""Reads a provider's completions replies and streams into hub form."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.choice_reply import read_choices
from dragoman.adapters.common.choice_stream import ChoiceStreamReader
from dragoman.adapters.common.reply_rules import ReplyRules

from .normalizer import TextNormalizer
from .requests import count_choices

__all__ = ["FINISH_REASONS", "CompletionsStreamReader", "read_completions_reply"]

FINISH_REASONS = frozenset({"stop", "length", "content_filter"})
"""The hub's own finish reasons."""


class CompletionsStreamReader(ChoiceStreamReader):
    """`read_stream` of completions, for every dialect."""

    protocol = TextNormalizer

    def choices_per_prompt(self, request: JsonObject) -> int | None:
        """The number of choices per prompt that the request asks for."""
        return count_choices(request)


def read_completions_reply(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read a reply into hub form, as the policy `replies` requires. Alters and returns `reply.body`.

    Raises Fault if the reply reports an error, is incomplete, or cannot be normalized.
    """
    return read_choices(reply, rules, ctx, TextNormalizer)
