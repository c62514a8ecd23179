"""Embeddings over litellm: OpenAI's form, with the hub's parameters only.

Vectors are requested as numbers, because every vendor supports these.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, drop_encoding_format

from .parameters import drop_unknown_parameters

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("openai")


def _rewrite(body: JsonObject, ctx: Context) -> None:
    drop_encoding_format(body, ctx)
    drop_unknown_parameters(body, ctx, HUB_EMBEDDINGS)


CALLED = embeddings_called(REPLY_RULES, rewrite=_rewrite, extras="keep-extensions")
