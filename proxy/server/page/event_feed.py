"""The live list: events for a browser about exchanges that begin, go on and end.

The feed looks at the buffer four times a second, so that exchanges cost nothing more while people watch. Only those of
which a line of the list has changed are sent, 200 at most at a time, the latest ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from dragoman.adapters.call import JsonObject
from dragoman.proxy.http.json_response import serialize
from dragoman.proxy.telemetry.inspector import InspectedExchange, Inspector

__all__ = ["EventFeed"]

_PERIOD = 0.25  # seconds between two looks
_STATE_PERIOD = 2.0  # seconds between two events about the state
_PING_PERIOD = 15.0
_MOST_AT_ONCE = 200
_STALL = 30.0  # seconds that a browser may read nothing


class EventFeed:
    """Writes events to one browser. `summarize` makes a line of an exchange, `read_state` the event `state`."""

    def __init__(
        self,
        inspector: Inspector,
        summarize: Callable[[InspectedExchange], JsonObject],
        read_state: Callable[[], JsonObject],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._inspector = inspector
        self._summarize = summarize
        self._read_state = read_state
        self._is_stopping = is_stopping
        self._last = max((one.number for one in islice(inspector.list_newest(), 1)), default=0)
        self._running = [one for one in inspector.list_newest() if not one.has_ended]
        self._seen: dict[int, tuple[object, ...]] = {}

    async def run(self, request: BaseRequest, response: StreamResponse) -> None:
        """Write until the browser leaves, reads nothing for too long, or the proxy stops."""
        await response.prepare(request)
        next_state = next_ping = 0.0
        while not self._is_stopping():
            data = b"".join(self._write_exchanges())
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

    def _write_exchanges(self) -> Iterator[bytes]:
        """The events since the last look, in the order in which the exchanges began."""
        new = [*takewhile(lambda one: one.number > self._last, self._inspector.list_newest())]
        if new:
            self._last = new[0].number
        changed = [one for one in self._running if self._has_changed(one)]
        self._running = [one for one in (*self._running, *new) if not one.has_ended and not one.is_dropped]
        self._seen = {one.number: _describe_progress(one) for one in self._running}
        latest = sorted((*changed, *new), key=lambda one: one.number)[-_MOST_AT_ONCE:]
        for entry in latest:
            yield _write_event("exchange", self._summarize(entry))

    def _has_changed(self, entry: InspectedExchange) -> bool:
        return self._seen.get(entry.number) != _describe_progress(entry)


def _describe_progress(entry: InspectedExchange) -> tuple[object, ...]:
    record = entry.record
    return record.model, record.target, record.attempts, record.first_token_ms is None, entry.has_ended


def _write_event(name: str, data: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), serialize(data))
