"""The databricks dialect of embeddings.

The address names the endpoint, which is the model. The service returns vectors as lists of numbers; dragoman encodes
base64 itself. The service accepts a limited number of inputs in one call, so a larger request becomes several calls.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Served
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.reply import write_embeddings
from dragoman.adapters.embeddings.requests import check_request, drop_encoding_format, refuse_stream
from dragoman.adapters.validation import load_validator

from .endpoint import make_invocation, remove_model, set_model_from_path
from .faults import WORDS, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("databricks", words=WORDS)


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_request(call.body, load_validator("databricks/embeddings.request", ctx.profile))
    body = dict(call.body)
    set_model_from_path(body, call, ctx)
    return body


def _rewrite(body: JsonObject, ctx: Context) -> None:
    remove_model(body, ctx)
    drop_encoding_format(body, ctx)


def _make_call(body: JsonObject, ctx: Context, _has_extras: bool) -> Call:
    return make_invocation(body, ctx, "/embeddings")


SERVED = Served(read_request, write_embeddings, refuse_stream, write_fault)
CALLED = embeddings_called(REPLY_RULES, rewrite=_rewrite, extras="drop", names_model=False, make_call=_make_call)
