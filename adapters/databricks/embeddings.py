"""The databricks dialect of embeddings.

The endpoint's name is the model and stands in the address. Vectors are lists of numbers: base64 is written here. The
service takes a limited number of inputs at once; a larger request becomes several calls.
"""

from __future__ import annotations

from urllib.parse import quote

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.embeddings.batches import batching
from dragoman.adapters.embeddings.reply import read_embeddings
from dragoman.adapters.embeddings.requests import HUB_EMBEDDINGS, check_request, drop_encoding_format, refuse_stream
from dragoman.adapters.fit import fit
from dragoman.adapters.validation import load_validator

from .faults import WORDS, read_fault, write_fault
from .invocations import endpoint_of

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS)

_SCHEMA = "databricks/embeddings.request"


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator(_SCHEMA, ctx.profile))
    body = dict(call.body)
    if (endpoint := endpoint_of(call.path)) is not None:
        if "model" in body:
            ctx.receipt.record_drop(("model",), "the address names the endpoint", "form")
        body["model"] = endpoint
    return body


def write_request(request: JsonObject, ctx: Context) -> Call:
    body = copy_request(request, ctx, HUB_EMBEDDINGS)
    if "model" in body:
        del body["model"]
        ctx.receipt.record_move(("model",), (), "the endpoint's name stands in the address")
    drop_encoding_format(body, ctx)
    fit(body, load_validator(_SCHEMA, ctx.profile), ctx, "drop", HUB_EMBEDDINGS)
    return Call("POST", f"/serving-endpoints/{quote(ctx.target.model, safe='')}/invocations", body)


def read_reply(reply: Reply, ctx: Context) -> JsonObject:
    return read_embeddings(reply, REPLY_RULES, ctx)


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, reply if reply.get("id") else {"id": ctx.new_id("emb"), **reply})


SERVED = Served(read_request, write_reply, refuse_stream, write_fault)
CALLED = Called(write_request, read_reply, refuse_stream, read_fault, batching(_SCHEMA))
