"""Embeddings over litellm: OpenAI's form, with parameters that the hub knows and no others.

Vectors are requested as numbers, which every vendor has.
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
