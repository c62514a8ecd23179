"""Embeddings over litellm: OpenAI's form, with parameters that the hub knows and no others.

Vectors are requested as numbers, which every vendor has.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import begin
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.dialect import Called
from dragoman.adapters.embeddings.batches import batching
from dragoman.adapters.embeddings.reply import read_embeddings
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, not_streamed, without_encoding
from dragoman.adapters.fit import fit
from dragoman.adapters.native_errors import read_fault
from dragoman.adapters.validation import judge

from .parameters import settle_parameters

__all__ = ["CALLED"]

READING = Reading("openai")

_SCHEMA = "openai/embeddings.request"


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = begin(request, ctx, HUB_EMBEDDINGS)
    body["model"] = ctx.target.model
    without_encoding(body, ctx)
    settle_parameters(body, ctx, HUB_EMBEDDINGS)
    fit(body, judge(_SCHEMA, ctx.profile), ctx, "keep-extensions", HUB_EMBEDDINGS)
    return Call("POST", "/embeddings", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_embeddings(reply, READING, ctx)


CALLED = Called(write_request, read_reply, not_streamed, read_fault, batching(_SCHEMA))
