"""The engine for asyncio: the events of each request as an async iterator. Closing the iterator cancels the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from .engine import Engine, EventBatch
from .generation import Delta, Event, Failed, Finished, GenerationRequest

__all__ = ["EventStreams"]


class EventStreams:
    """Distributes an engine's events to async iterators, with one callback into the event loop per engine step."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._queues: dict[int, asyncio.Queue[Event]] = {}
        engine.deliver = self._deliver

    def _deliver(self, batch: EventBatch) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._dispatch, batch)

    def _dispatch(self, batch: EventBatch) -> None:
        for ticket, event in batch:
            queue = self._queues.get(ticket)
            if queue is not None:
                queue.put_nowait(event)

    async def run(self, request: GenerationRequest) -> AsyncGenerator[Delta | Finished, None]:
        """Run a request; yield its events until all choices have finished. Raises Fault, on submission or later."""
        ticket = self._engine.submit(request)
        queue = self._queues[ticket] = asyncio.Queue()
        unfinished = request.n
        try:
            while unfinished:
                event = await queue.get()
                if isinstance(event, Failed):
                    unfinished = 0
                    raise event.fault
                if isinstance(event, Finished):
                    unfinished -= 1
                yield event
        finally:
            del self._queues[ticket]
            if unfinished:
                self._engine.cancel(ticket)
