"""One call of a provider whose request and reply are rewritten by emulations, behind the bridge.

Each emulation rewrites what the one before it has made. Replies and streams go back through them from the last to the
first. An emulation that needs a further call gets it before those in front of it see an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Output, PartlyRead, StreamReader

from .interface import Emulation, StreamMerger

__all__ = ["RewrittenCall", "RewrittenStream"]


@dataclass(slots=True)
class _Level:
    """What one emulation made of the request of `ctx`. `receipt` is that of the request that it made."""

    emulation: Emulation
    ctx: Context
    receipt: Receipt
    replies: list[JsonObject] = field(default_factory=list)


class RewrittenCall:
    """`ctx` is the context of the call to make now. If it is that of the original request, nothing was rewritten."""

    __slots__ = ("_emulations", "_levels", "_receipt", "ctx")

    def __init__(self, ctx: Context, emulations: Sequence[Emulation]) -> None:
        """Rewrite the request of `ctx`, the first emulation first. Raises Fault."""
        self._receipt = ctx.receipt
        self._emulations = emulations
        self._levels: list[_Level] = []
        self.ctx = self._rewrite(ctx, emulations)

    def take_reply(self, reply: JsonObject) -> JsonObject | None:
        """The reply to the original request, from the reply to the call; None if `ctx` has a further call that has to
        be made first. Raises Fault."""
        for position in range(len(self._levels) - 1, -1, -1):
            level = self._levels[position]
            level.replies.append(reply)
            request = level.emulation.follow_up(level.replies, level.ctx)
            if request is not None:
                self._absorb_receipt()
                self._follow_up(position, request)
                return None
            reply = level.emulation.join(level.replies, level.ctx)
        self._absorb_receipt()
        return reply

    def wrap_stream(self, stream: StreamReader) -> StreamReader:
        """The stream of the original request, from that of the call."""
        mergers = [level.emulation.merge for level in reversed(self._levels)]
        contexts = [level.ctx for level in reversed(self._levels)]
        return RewrittenStream(
            stream, [merge(ctx, 1) for merge, ctx in zip(mergers, contexts, strict=True) if merge is not None]
        )

    def _rewrite(self, ctx: Context, emulations: Sequence[Emulation]) -> Context:
        for emulation in emulations:
            (made,) = emulation.split(ctx)
            if made is not ctx:
                self._levels.append(_Level(emulation, ctx, made.receipt.fork()))
            ctx = made
        return ctx

    def _follow_up(self, position: int, request: JsonObject) -> None:
        """Make the request of one level anew. Its receipt is another one: it was not written yet."""
        level = self._levels[position]
        del self._levels[position + 1 :]
        ctx = level.ctx._replace(request=request, receipt=level.receipt.fork())
        following = self._emulations[self._emulations.index(level.emulation) + 1 :]
        self.ctx = self._rewrite(ctx, following)

    def _absorb_receipt(self) -> None:
        made = self.ctx.receipt
        if made is not self._receipt:
            self._receipt.absorb(made)
            made.violations = 0


class RewrittenStream:
    """A StreamReader: the outputs of another one, rewritten."""

    def __init__(self, stream: StreamReader, mergers: Sequence[StreamMerger]) -> None:
        """The first merger rewrites first."""
        self._stream = stream
        self._mergers = mergers
        self._has_failed = False

    @property
    def usage(self) -> JsonObject | None:
        """The usage of the call."""
        return self._stream.usage

    @property
    def has_ended(self) -> bool:
        """Whether the terminal was returned."""
        return self._has_failed or self._stream.has_ended

    def receive(self, data: bytes) -> list[Output]:
        """The rewritten outputs of these bytes. Raises PartlyRead."""
        try:
            outputs = self._stream.receive(data)
        except PartlyRead as partly:
            raise PartlyRead(self._rewrite(partly.outputs), partly.error) from partly.error
        return self._rewrite(outputs)

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The last rewritten outputs."""
        return self._rewrite(self._stream.close(cut))

    def _rewrite(self, outputs: list[Output]) -> list[Output]:
        for merger in self._mergers:
            if outputs:
                outputs = merger.feed(0, outputs)
        self._has_failed = self._has_failed or (bool(outputs) and isinstance(outputs[-1], Fault))
        return outputs
