"""Reads the reply to one of the calls that emulations have made of a request."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.calls import EmulatedCalls
from dragoman.adapters.emulation.rewritten_call import RewrittenCall
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Output, PartlyRead

from .plan import ProtocolPlan
from .reply_reader import ReplyReader
from .restream import stream_reply

__all__ = ["CallPart", "EmulatedReader", "create_reader"]


class CallPart(NamedTuple):
    """One of several calls: its position among them. `protocol` is the client's."""

    calls: EmulatedCalls
    position: int
    protocol: str


class EmulatedReader(ReplyReader):
    """Returns the outputs of the client's stream, which the streams of all calls make together. If the client asked for
    a stream, a whole reply is a part of it too."""

    def __init__(
        self,
        plan: ProtocolPlan,
        provider: str,
        ctx: Context,
        request: JsonObject,
        rewritten: RewrittenCall | None,
        part: CallPart,
    ) -> None:
        """`request` is the client's, `ctx` the context of the call, which is this part of the calls."""
        super().__init__(plan, provider, ctx, request, rewritten)
        self._part = part

    def receive(self, data: bytes) -> list[Output]:
        """As the base class. Raises Fault and PartlyRead."""
        try:
            outputs = super().receive(data)
        except PartlyRead as partly:
            raise PartlyRead(self._merge(partly.outputs), partly.error) from partly.error
        return self._merge(outputs)

    def close(self, cut: Fault | None = None) -> list[Output]:
        """As the base class. Raises Fault."""
        outputs = super().close(cut)
        if self.reply is not None and self._wants_stream:
            self.is_stream = True
            outputs = stream_reply(self._part.protocol, self.reply, self._request)
        return self._merge(outputs)

    def _merge(self, outputs: list[Output]) -> list[Output]:
        if outputs:
            calls, position = self._part.calls, self._part.position
            outputs = calls.feed(position, outputs)
            self.has_ended = self.has_ended or calls.has_ended(position)
        return outputs


def create_reader(
    plan: ProtocolPlan,
    provider: str,
    ctx: Context,
    request: JsonObject,
    rewritten: RewrittenCall | None,
    part: CallPart | None,
) -> ReplyReader:
    """The reader of the reply to a call; `part` is None if it is the only call of its request."""
    if part is None:
        return ReplyReader(plan, provider, ctx, request, rewritten)
    return EmulatedReader(plan, provider, ctx, request, rewritten, part)
