"""From an upstream's bytes to hub outputs: one list for each read, so that each read makes one write.

Who is complete and who is cut short, only the stream reader says; here is just the order of things.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Framer, Item, TooLong
from dragoman.adapters.streams import Chunk, End, Output, StreamReader

from .clock import Clock
from .config.models import Timeouts
from .upstream import Incoming

__all__ = ["outputs_of", "outputs_of_reply"]


async def outputs_of(
    incoming: Incoming, reader: StreamReader, clock: Clock, timeouts: Timeouts
) -> AsyncIterator[list[Output]]:
    """What the reader makes of each read, up to and with its terminal. Raises no Fault: it is the last output."""
    framer = Framer()
    begun = False
    while not reader.ended:
        if begun:
            clock.enter("inter_token", timeouts.inter_token)
        try:
            data = await incoming.chunk()
            items = framer.feed(data) if data else framer.close()
        except Fault as cut:
            yield _closing(framer, reader, cut)
            return
        except TooLong as error:
            yield [Fault("upstream_invalid_response", str(error), code="upstream_response_too_large")]
            return
        outputs = _fed(reader, items)
        if not data and not reader.ended:
            outputs += reader.close()
        if outputs:
            begun = True
            yield outputs


def outputs_of_reply(chunks: list[JsonObject]) -> list[Output]:
    """A reply that came whole, as a stream."""
    return [*(Chunk(chunk) for chunk in chunks), End()]


def _fed(reader: StreamReader, items: list[Item]) -> list[Output]:
    if len(items) == 1:
        return reader.feed(items[0])
    return [output for item in items for output in reader.feed(item)]


def _closing(framer: Framer, reader: StreamReader, cut: Fault) -> list[Output]:
    try:
        items = framer.close()
    except TooLong:
        items = []
    outputs = _fed(reader, items)
    return outputs if reader.ended else outputs + reader.close(cut)
