"""Embeddings over litellm: OpenAI's form, with parameters that the hub knows and no others.

Vectors are requested as numbers, which every vendor has.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called
from dragoman.adapters.embeddings.batches import batching
from dragoman.adapters.embeddings.reply import read_embeddings
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, drop_encoding_format, refuse_stream
from dragoman.adapters.fit import fit
from dragoman.adapters.native_errors import read_fault
from dragoman.adapters.validation import load_validator

from .parameters import settle_parameters

__all__ = ["CALLED"]

REPLY_RULES = ReplyRules("openai")

_SCHEMA = "openai/embeddings.request"


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_EMBEDDINGS)
    body["model"] = ctx.target.model
    drop_encoding_format(body, ctx)
    settle_parameters(body, ctx, HUB_EMBEDDINGS)
    fit(body, load_validator(_SCHEMA, ctx.profile), ctx, "keep-extensions", HUB_EMBEDDINGS)
    return Call("POST", "/embeddings", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_embeddings(reply, REPLY_RULES, ctx)


CALLED = Called(write_request, read_reply, refuse_stream, read_fault, batching(_SCHEMA))
