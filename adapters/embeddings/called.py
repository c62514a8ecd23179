"""Makes the called verbs of an embeddings dialect from data."""

from __future__ import annotations

from typing import Unpack

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.request_writer import RequestOptions, request_writer
from dragoman.adapters.dialect import Called

from .batches import make_batching
from .reply import read_embeddings
from .requests import HUB_EMBEDDINGS, refuse_stream

__all__ = ["embeddings_called"]


def embeddings_called(rules: ReplyRules, **options: Unpack[RequestOptions]) -> Called:
    """The verbs toward a provider of embeddings.

    Requests are fitted to the schema `<dialect>/embeddings.request`, and split if it allows fewer inputs. Their path is
    `/embeddings` unless the options name another.
    """

    def read_reply(reply: Reply, ctx: Context) -> JsonObject:
        return read_embeddings(reply, rules, ctx)

    schema = f"{rules.dialect}/embeddings.request"
    options.setdefault("path", "/embeddings")
    write_request = request_writer(schema, HUB_EMBEDDINGS, **options)
    return Called(write_request, read_reply, refuse_stream, rules.read_fault, make_batching(schema))
