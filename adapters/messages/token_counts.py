"""The number of tokens of a request: what `count_tokens` asks for and answers."""

from __future__ import annotations

from typing import NoReturn

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.reply_validation import find_error
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object

__all__ = ["read_count", "refuse_stream"]

_TOKENS = "input_tokens"


def read_count(reply: Reply, rules: ReplyRules, ctx: Context) -> JsonObject:
    """Read the number of tokens. Raises Fault if the body has none."""
    count = reply.body.get(_TOKENS)
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        return reply.body
    if (error := find_error(reply.body)) is not None:
        raise read_error_object(error, reply.status, rules.words, ctx.clock())
    text = f"the provider sent no number of tokens ({_TOKENS})"
    raise Fault("upstream_invalid_response", text, code="upstream_invalid_response")


def refuse_stream(_ctx: Context) -> NoReturn:
    """Refuse to stream, in place of the verbs of streams, which counts do not have. Raises Fault, always."""
    raise Fault("unsupported_parameter", "the number of tokens is not streamed", ("stream",))
