"""The live list: events for a browser about exchanges that begin, go on and end.

The feed looks at the buffer four times a second, so that exchanges cost nothing more while people watch. Of the new
ones it sends the latest, and how many it leaves out: nobody reads thousands of lines a second, and each costs a tenth
of a millisecond. Exchanges that were sent are sent again when their line has changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from dragoman.adapters.call import JsonObject
from dragoman.proxy.http.json_response import serialize
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord

__all__ = ["MOST_AT_ONCE", "EventFeed"]

MOST_AT_ONCE = 200
"""The most lines of one look. What is not used of `most` is saved up to this number."""

_PERIOD = 0.25  # seconds between two looks
_STATE_PERIOD = 2.0  # seconds between two events about the state
_PING_PERIOD = 15.0
_STALL = 30.0  # seconds that a browser may read nothing

_Progress: TypeAlias = tuple[object, ...]
"""What a line of the list shows of an exchange that runs."""


class EventFeed:
    """Writes events to one browser. `summarize` makes a line of an exchange, `read_state` the event `state`. `most` is
    how many new exchanges are sent at each look if there are always more."""

    def __init__(
        self,
        inspector: Inspector,
        summarize: Callable[[ExchangeRecord], JsonObject],
        read_state: Callable[[], JsonObject],
        is_stopping: Callable[[], bool],
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._inspector = inspector
        self._summarize = summarize
        self._read_state = read_state
        self._is_stopping = is_stopping
        self._last = max((one.number for one in islice(inspector.list_newest(), 1)), default=0)
        self._most = min(most, MOST_AT_ONCE)
        self._room = MOST_AT_ONCE
        self._running: dict[ExchangeRecord, _Progress | None] = {
            one: None for one in inspector.list_newest() if not one.has_ended
        }  # what the browser knows of those that have not ended

    async def run(self, request: BaseRequest, response: StreamResponse) -> None:
        """Write until the browser leaves, reads nothing for too long, or the proxy stops."""
        await response.prepare(request)
        next_state = next_ping = 0.0
        while not self._is_stopping():
            data = b"".join(self.write_changes())
            now = time.monotonic()
            if now >= next_state:
                data += _write_event("state", self._read_state())
                next_state = now + _STATE_PERIOD
            if now >= next_ping:
                data += b": ping\n\n"
                next_ping = now + _PING_PERIOD
            if data:
                async with asyncio.timeout(_STALL):
                    await response.write(data)
            await asyncio.sleep(_PERIOD)
        await response.write_eof()

    def write_changes(self) -> Iterator[bytes]:
        """The events since the last look, in the order in which the exchanges began."""
        new = [*takewhile(lambda one: one.number > self._last, self._inspector.list_newest())]
        if new:
            self._last = new[0].number
        self._room = min(MOST_AT_ONCE, self._room + self._most)
        chosen = new[: self._room]
        self._room -= len(chosen)
        self._running = {one: known for one, known in self._running.items() if one.kept_bytes}
        changed = [one for one, known in self._running.items() if known != _describe_progress(one)][:MOST_AT_ONCE]
        for record in sorted((*changed, *chosen), key=lambda one: one.number):
            if record.has_ended:
                self._running.pop(record, None)
            else:
                self._running[record] = _describe_progress(record)
            yield _write_event("exchange", self._summarize(record))
        if count := len(new) - len(chosen):
            yield _write_event("left_out", {"count": count})


def _describe_progress(record: ExchangeRecord) -> _Progress:
    return record.model, record.target, record.attempts, record.first_token_ms is None, record.has_ended


def _write_event(name: str, data: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), serialize(data))
