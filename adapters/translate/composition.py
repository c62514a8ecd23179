"""Makes a bridge of two: the first one's provider protocol is the second one's client protocol."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.streams import Output, StreamTranslator

from .bridge_interface import Bridge

__all__ = ["compose"]

_UNKNOWN: JsonObject = {"stream_options": {"include_usage": True}}
"""What is assumed of the request in the middle if there was none: all of the reply is wanted."""


def compose(first: Bridge, second: Bridge) -> Bridge:
    """The bridge from the client's protocol of `first` to the provider's protocol of `second`.

    Requests go through the first bridge and then the second one, replies and streams the other way. The request in the
    middle is in `Context.middle`.
    """

    def request(ctx: Context) -> Context:
        middle = first.full_request(ctx) if first.full_request is not None else first.request(ctx)
        return second.request(middle)._replace(middle=middle.request)

    def reply(reply: JsonObject, request: JsonObject, ctx: Context) -> JsonObject:
        return first.reply(second.reply(reply, ctx.middle or _UNKNOWN, ctx), request, ctx)

    def stream(request: JsonObject, ctx: Context) -> StreamTranslator:
        return _ChainedTranslator(second.stream(ctx.middle or _UNKNOWN, ctx), first.stream(request, ctx))

    return Bridge(second.called, request, reply, stream, first.batching, first.needs_first_choice)


class _ChainedTranslator:
    """A StreamTranslator of two: what the first one makes goes through the second one."""

    def __init__(self, first: StreamTranslator, second: StreamTranslator) -> None:
        self._first = first
        self._second = second
        self.dropped = 0

    def feed(self, output: Output) -> list[Output]:
        """The outputs in the client's protocol."""
        made = [one for between in self._first.feed(output) for one in self._second.feed(between)]
        self.dropped = self._first.dropped + self._second.dropped
        return made
