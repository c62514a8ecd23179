"""A whole reply as a stream, for a client that asked for a stream and a provider that answered whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.common.completeness import to_stream_outputs
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.common.usage import UNASKED_USAGE
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.messages.events import MESSAGE_STOP
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.responses.events import TERMINALS
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.streams import Output

from .guard import explain_reply_error

__all__ = ["CLOSING_EVENTS", "stream_reply", "stream_whole_reply"]

CLOSING_EVENTS = TERMINALS | {MESSAGE_STOP}
"""The types of the events that say that an answer is complete."""

_USAGE_ON_REQUEST = frozenset({"chat", "completions"})
"""The protocols whose streams have usage only if the client asks for it."""


def stream_whole_reply(protocol: str, reply: JsonObject, request: JsonObject, ctx: Context) -> list[Output]:
    """As `stream_reply`, for the whole answer: the receipt of `ctx` says what the stream lacks. Raises Fault."""
    unasked = protocol in _USAGE_ON_REQUEST and reply.get("usage") and not wants_usage(request)
    if unasked and ctx.target.policy.stream_usage == "leave":
        ctx.receipt.record_drop(("usage",), UNASKED_USAGE, "form")
    try:
        return [*stream_reply(protocol, reply, request)]
    except Exception as error:
        raise explain_reply_error(error, ctx, f"hub/{protocol}.reply", reply) from error


def stream_reply(protocol: str, reply: JsonObject, request: JsonObject) -> list[Output]:
    """The outputs of the protocol that add up to a reply in canonical form. `request` is the client's."""
    return to_stream_outputs(_RESTREAM[protocol](reply, request))


_RESTREAM: Mapping[str, Callable[[JsonObject, JsonObject], list[JsonObject]]] = {
    "chat": lambda reply, request: restream(reply, wants_usage(request)),
    "completions": lambda reply, request: restream_text(reply, wants_usage(request)),
    "responses": lambda reply, request: restream_response(reply),
    "messages": lambda reply, request: restream_message(reply),
}
