"""Makes the verbs toward a provider of Messages from data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.adapters.call import Call, Context, JsonObject, Reply, Target
from dragoman.adapters.common.parameters import copy_request
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Called
from dragoman.adapters.extras import Extras
from dragoman.adapters.fit import fit
from dragoman.adapters.request_properties import HUB_MESSAGES, hub_annotations
from dragoman.adapters.validation import load_validator

from .foreign_thinking import drop_foreign_thinking
from .headers import write_headers
from .reply import read_message
from .stream import MessagesStreamReader
from .token_counts import read_count, refuse_stream

__all__ = ["messages_called"]

_LIMIT = "max_tokens"


def messages_called(
    rules: ReplyRules, find_path: Callable[[Target], str], *, takes_betas: bool = True, extras: Extras = "keep"
) -> Mapping[str, Called]:
    """The verbs toward a provider of Messages, and those with which the tokens of its requests are counted.

    Requests are fitted to the schemas of the dialect. `find_path` returns the path for a target. If the provider does
    not take betas, it gets none.
    """

    def write_request(request: JsonObject, ctx: Context) -> Call:
        return write(request, ctx, "messages", find_path(ctx.target))

    def write_count(request: JsonObject, ctx: Context) -> Call:
        return write(request, ctx, "count_tokens", f"{find_path(ctx.target)}/count_tokens")

    def write(request: JsonObject, ctx: Context, protocol: str, path: str) -> Call:
        body = copy_request(request, ctx, HUB_MESSAGES)
        body["model"] = ctx.target.model
        drop_foreign_thinking(body, ctx)
        if protocol == "messages":
            _fill_limit(body, ctx)
        validator = load_validator(f"{rules.dialect}/{protocol}.request", ctx.profile)
        fit(body, validator, ctx, extras, HUB_MESSAGES)
        return Call("POST", path, body, headers=write_headers(body, ctx, validator, takes_betas=takes_betas))

    def read_reply(reply: Reply, ctx: Context) -> JsonObject:
        return read_message(reply, rules, ctx)

    def read_stream(ctx: Context) -> MessagesStreamReader:
        return MessagesStreamReader(rules, ctx)

    def read_tokens(reply: Reply, ctx: Context) -> JsonObject:
        return read_count(reply, rules, ctx)

    return {
        "messages": Called(write_request, read_reply, read_stream, rules.read_fault),
        "count_tokens": Called(write_count, read_tokens, refuse_stream, rules.read_fault),
    }


def _fill_limit(body: JsonObject, ctx: Context) -> None:
    """Fill in the limit on tokens, which the protocol requires: the target's, the model's, or the schema's default."""
    if body.get(_LIMIT) is not None:
        return
    facts, configured = ctx.target.facts, ctx.target.limits.get(_LIMIT)
    if configured is not None:
        body[_LIMIT] = configured
        ctx.receipt.record_fill((_LIMIT,), "the provider requires a limit; this is the target's")
    elif facts.output is not None:
        body[_LIMIT] = facts.output
        ctx.receipt.record_fill(
            (_LIMIT,), f"the provider requires a limit; this is the model's: {facts.describe('output')}"
        )
    else:
        body[_LIMIT] = hub_annotations(HUB_MESSAGES)[_LIMIT,]["default"]
        ctx.receipt.record_fill((_LIMIT,), "the provider requires a limit, and none is known of the model", "loss")
