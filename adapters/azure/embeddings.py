"""The azure dialect of embeddings.

Inputs are a list. Base64 is written here, from the numbers that every model sends: not every model has it, and OpenAI's
clients ask for it unasked. The other formats of a vector are the provider's own.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.embeddings.batches import batching
from dragoman.adapters.embeddings.reply import read_embeddings
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, check_request, drop_encoding_format, refuse_stream
from dragoman.adapters.fit import fit
from dragoman.adapters.validation import load_validator

from .calls import DEFAULT_API_VERSION, call_headers, check_version, extras_of, settle_extras
from .faults import WORDS, read_fault, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("azure", words=WORDS)

_SCHEMA = "azure/embeddings.request"


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_version(call)
    rules = load_validator(_SCHEMA, ctx.profile)
    check_request(call.body, rules)
    body = dict(call.body)
    settle_extras(body, rules, call, ctx)
    return body


def write_request(request: JsonObject, ctx: Context) -> Call:
    rules = load_validator(_SCHEMA, ctx.profile)
    version = ctx.target.api_version or DEFAULT_API_VERSION
    body = copy_request(request, ctx, HUB_EMBEDDINGS)
    body["model"] = ctx.target.model
    drop_encoding_format(body, ctx)
    if isinstance(body["input"], str):
        ctx.receipt.record_conversion(("input",), "a list of one", after=("input", 0))
        ctx.receipt.map_paths([(("input",), ("input", 0))])
        body["input"] = [body["input"]]
    fit(body, rules, ctx, extras_of(ctx), HUB_EMBEDDINGS)
    return Call("POST", "/embeddings", body, {"api-version": version}, call_headers(body, rules, ctx))


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_embeddings(reply, REPLY_RULES, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply if reply.get("id") else {"id": ctx.new_id("emb"), **reply})


SERVED = Served(read_request, write_reply, refuse_stream, write_fault)
CALLED = Called(write_request, read_reply, refuse_stream, read_fault, batching(_SCHEMA))
