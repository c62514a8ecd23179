"""Embeddings over litellm: OpenAI's form, closed. Vectors are asked for as numbers, which every vendor has."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, without_encoding

from .closed import close

__all__ = ["CALLED"]

READING = Reading("openai")


def _rewrite(body: JsonObject, ctx: Context) -> None:
    without_encoding(body, ctx)
    close(body, ctx, HUB_EMBEDDINGS)


CALLED = embeddings_called(READING, rewrite=_rewrite, extras="keep-extensions")
