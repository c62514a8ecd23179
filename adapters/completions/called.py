"""Makes the called verbs of a completions dialect from data."""

from __future__ import annotations

from typing import Unpack

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.request_writer import RequestOptions, request_writer
from dragoman.adapters.dialect import Called
from dragoman.adapters.request_properties import HUB_COMPLETIONS

from .reply import CompletionsStreamReader, read_completions_reply

__all__ = ["completions_called"]


def completions_called(rules: ReplyRules, **options: Unpack[RequestOptions]) -> Called:
    """The verbs toward a provider that speaks completions.

    Requests are fitted to the schema `<dialect>/completions.request`. Their path is `/completions` unless the options
    name another.
    """

    def read_reply(reply: Reply, ctx: Context) -> JsonObject:
        return read_completions_reply(reply, rules, ctx)

    def read_stream(ctx: Context) -> CompletionsStreamReader:
        return CompletionsStreamReader(rules, ctx)

    options.setdefault("path", "/completions")
    write_request = request_writer(f"{rules.dialect}/completions.request", HUB_COMPLETIONS, **options)
    return Called(write_request, read_reply, read_stream, rules.read_fault)
