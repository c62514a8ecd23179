"""The azure dialect of embeddings.

Inputs are a list. Providers are asked for numbers, and dragoman encodes base64 itself: OpenAI's clients ask for base64
by default, and not every model supports it. Other formats of vectors are passed through.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Served
from dragoman.adapters.embeddings.called import embeddings_called
from dragoman.adapters.embeddings.reply import write_embeddings
from dragoman.adapters.embeddings.requests import check_request, drop_encoding_format, refuse_stream
from dragoman.adapters.validation import load_validator

from .calls import apply_extras_header, check_version, choose_extras, create_call_maker
from .faults import WORDS, write_fault

__all__ = ["CALLED", "SERVED"]

REPLY_RULES = ReplyRules("azure", words=WORDS)

_SCHEMA = "azure/embeddings.request"


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_version(call)
    rules = load_validator(_SCHEMA, ctx.profile)
    check_request(call.body, rules)
    body = dict(call.body)
    apply_extras_header(body, rules, call, ctx)
    return body


def _rewrite(body: JsonObject, ctx: Context) -> None:
    drop_encoding_format(body, ctx)
    if isinstance(body["input"], str):
        ctx.receipt.record_conversion(("input",), "a list of one", after=("input", 0))
        ctx.receipt.map_paths([(("input",), ("input", 0))])
        body["input"] = [body["input"]]


SERVED = Served(read_request, write_embeddings, refuse_stream, write_fault)
CALLED = embeddings_called(
    REPLY_RULES, rewrite=_rewrite, extras=choose_extras, make_call=create_call_maker("/embeddings")
)
