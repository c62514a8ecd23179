"""The calls that the emulations of one request make, and what becomes of their replies.

Each emulation splits every request that the one before it has made, so the requests form a tree: its root is the
client's request, its leaves are the calls. Replies and streams go back from the leaves to the root.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import End, Output

from .interface import Emulation, StreamMerger

__all__ = ["EmulatedCalls"]


class _Group(NamedTuple):
    """A request, and how many requests it was split into."""

    ctx: Context
    size: int


class _Level(NamedTuple):
    """What one emulation made."""

    emulation: Emulation
    groups: list[_Group]


class EmulatedCalls:
    """`parts` has a context for each call. If there are no levels, no emulation had anything to do."""

    __slots__ = ("_ended", "_levels", "_receipt", "_routes", "parts")

    def __init__(self, ctx: Context, emulations: Iterable[Emulation]) -> None:
        """Split the request of `ctx`, the first emulation first. Raises Fault."""
        self.parts = [ctx]
        self._receipt = ctx.receipt
        self._levels: list[_Level] = []
        self._routes: list[list[tuple[StreamMerger, int]]] = []
        self._ended: set[int] = set()
        for emulation in emulations:
            self._split(emulation)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to merge: the only call is that of the client's request."""
        return not self._levels

    @property
    def can_stream(self) -> bool:
        """Whether the calls may be streamed."""
        return all(level.emulation.merge is not None for level in self._levels)

    def join(self, replies: list[JsonObject]) -> JsonObject:
        """The reply of the client's request, from the replies of all calls. Raises Fault."""
        self.absorb_receipts()
        for emulation, groups in reversed(self._levels):
            left = iter(replies)
            replies = [emulation.join([*islice(left, size)], ctx) for ctx, size in groups]
        self.absorb_receipts()
        return replies[0]

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """The outputs of the client's stream for these outputs of one call's stream."""
        if not self._routes:
            self._open_streams()
        for merger, position in self._routes[part]:
            if not outputs:
                break
            outputs = merger.feed(position, outputs)
            if outputs and isinstance(outputs[-1], End | Fault):
                self._ended.add(part)
        if outputs and isinstance(outputs[-1], End | Fault):
            self.absorb_receipts()
        return outputs

    def absorb_receipts(self) -> None:
        """Add the changes of all requests to the receipt of the client's request."""
        receipts = [group.ctx.receipt for level in self._levels for group in level.groups]
        for receipt in (*receipts, *(part.receipt for part in self.parts)):
            if receipt is not self._receipt:
                self._receipt.absorb(receipt)
                receipt.violations = 0

    def has_ended(self, part: int) -> bool:
        """Whether nothing more of this call's stream is needed, though the provider may send more."""
        return part in self._ended

    def _split(self, emulation: Emulation) -> None:
        made = [emulation.split(part) for part in self.parts]
        if all(len(group) == 1 and group[0] is part for group, part in zip(made, self.parts, strict=True)):
            return
        groups = [_Group(part, len(group)) for group, part in zip(made, self.parts, strict=True)]
        self._levels.append(_Level(emulation, groups))
        self.parts = [part for group in made for part in group]

    def _open_streams(self) -> None:
        """Find the way of each call's outputs: a merger, and the call's position in it, for each level."""
        self._routes = [[] for _ in self.parts]
        places = [*range(len(self.parts))]  # of each call among the requests of a level
        for emulation, groups in reversed(self._levels):
            assert emulation.merge is not None
            mergers = [emulation.merge(ctx, size) for ctx, size in groups]
            found = [(number, position) for number, group in enumerate(groups) for position in range(group.size)]
            for route, place in zip(self._routes, places, strict=True):
                number, position = found[place]
                route.append((mergers[number], position))
            places = [found[place][0] for place in places]
