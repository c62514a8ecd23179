"""From an upstream's bytes to hub outputs: one list for each read, so that each read makes one write.

Who is complete and who is cut short, only the stream reader says; here is just the order of things. Most of a stream is
chunks that differ in nothing but their text: where the reader tells them at a glance they are taken as one Run, and not
framed. A read may hold a whole stream: its first events are fed one by one, until the reader knows what to look for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import FIELDS, Framer, Item, Stray, TooLong
from dragoman.adapters.streams import Chunk, End, Output, Run, StreamReader
from dragoman.proxy.config.models import Timeouts
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.upstreams.interface import Incoming

__all__ = ["outputs_of", "outputs_of_reply"]

_FIRST = 4  # events of a read that are fed one by one where no run begins


async def outputs_of(
    incoming: Incoming,
    reader: StreamReader,
    clock: Clock,
    timeouts: Timeouts,
    blamed: Callable[[Exception], Exception],
) -> AsyncIterator[list[Output | Run]]:
    """What the reader makes of each read, up to and with its terminal. `blamed` says what to raise for an
    exception that bytes brought out. No other Fault is raised: they are last outputs."""
    framer = Framer()
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
            outputs: list[Output | Run] = _read(framer, reader, data) if data else [*_closing(framer, reader, cut)]
        except TooLong as error:
            yield [Fault("upstream_invalid_response", str(error), code="upstream_response_too_large")]
            return
        except Exception as error:  # noqa: BLE001 - nobody foresaw it
            raise blamed(error) from None
        if outputs:
            begun = True
            yield outputs


def outputs_of_reply(chunks: list[JsonObject]) -> list[Output | Run]:
    """A reply that came whole, as a stream."""
    return [*(Chunk(chunk) for chunk in chunks), End()]


def _read(framer: Framer, reader: StreamReader, data: bytes) -> list[Output | Run]:
    outputs: list[Output | Run] = []
    at = 0
    for _ in range(_FIRST):
        run = reader.run(data, at) if framer.between_events else None
        if run is not None:
            outputs.append(run)
            at += run.size
            break
        end = data.find(b"\n\n", at) + 2
        if end < 2 or end == len(data):
            break
        outputs += _fed(reader, framer.feed(data[at:end]))
        at = end
    if at < len(data):
        outputs += _fed(reader, framer.feed(data[at:]))
    return outputs


def _fed(reader: StreamReader, items: list[Item]) -> list[Output]:
    if len(items) == 1:
        return reader.feed(items[0])
    return [output for item in items for output in reader.feed(item)]


def _closing(framer: Framer, reader: StreamReader, cut: Fault | None = None) -> list[Output]:
    """The bytes ended; `cut` tells how, where they did not end cleanly. Raises TooLong only where they did.

    What is left of an event counts where it can be read; where it cannot, that it was torn is the fault.
    """
    try:
        items = framer.close()
    except TooLong:
        if cut is None:
            raise
        items = []
    outputs = _fed(reader, items)
    if not reader.ended:
        return outputs + reader.close(cut)
    last = outputs[-1]
    torn = isinstance(last, Fault) and last.code == "upstream_invalid_event" and _is_part(items[-1])
    return [*outputs[:-1], cut or _torn()] if torn else outputs


def _is_part(item: Item) -> bool:
    """Whether a last, unfinished item is a part of an event, as opposed to a text that a provider ends with."""
    if not isinstance(item, Stray):
        return True
    name = item.text.partition(b":")[0]
    return item.text[:1] in (b"{", b"[") or any(field.startswith(name) for field in FIELDS)


def _torn() -> Fault:
    text = "the provider's stream ended in the middle of an event"
    return Fault("upstream_invalid_response", text, code="upstream_truncated")
