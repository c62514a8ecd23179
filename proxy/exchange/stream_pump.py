"""From an upstream's bytes to hub outputs: one list for each read, so that each read makes one write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Output, StreamReader
from dragoman.proxy.config.models import Timeouts
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.upstreams.interface import Incoming

__all__ = ["outputs_of"]


async def outputs_of(
    incoming: Incoming,
    reader: StreamReader,
    clock: Clock,
    timeouts: Timeouts,
    blamed: Callable[[Exception], Exception],
) -> AsyncIterator[list[Output]]:
    """The reader's outputs for each read, up to and with its terminal. `blamed` says what to raise for an
    exception that bytes brought out. No other Fault is raised: they are last outputs."""
    begun = False
    while not reader.ended:
        if begun:
            clock.enter("inter_token", timeouts.inter_token)
        cut: Fault | None = None
        try:
            data = await incoming.chunk()
        except Fault as fault:
            data, cut = b"", fault
        try:
            outputs = reader.receive(data) if data else reader.close(cut)
        except Exception as error:  # noqa: BLE001 - nobody foresaw it
            raise blamed(error) from None
        if outputs:
            begun = True
            yield outputs
