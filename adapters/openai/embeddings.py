"""The openai dialect of embeddings: the hub's own form."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.embeddings.batches import batching
from dragoman.adapters.embeddings.reply import read_embeddings
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, check_request, refuse_stream
from dragoman.adapters.fit import fit
from dragoman.adapters.validation import load_validator

from .faults import read_fault, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("openai")

_SCHEMA = "openai/embeddings.request"


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator(_SCHEMA, ctx.profile))
    return call.body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_EMBEDDINGS)
    body["model"] = ctx.target.model
    fit(body, load_validator(_SCHEMA, ctx.profile), ctx, "keep-extensions", HUB_EMBEDDINGS)
    return Call("POST", "/embeddings", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_embeddings(reply, REPLY_RULES, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply)


SERVED = Served(read_request, write_reply, refuse_stream, write_fault)
CALLED = Called(write_request, read_reply, refuse_stream, read_fault, batching(_SCHEMA))
