"""The engine for asyncio: the events of each request as an async iterator. Closing it early cancels the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from .engine import Batch, Engine
from .requests import Delta, Event, Failed, Finished, Generation

__all__ = ["Streams"]


class Streams:
    """Takes over an engine's `deliver`. One call into the loop per step of the engine, however many requests run."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._queues: dict[int, asyncio.Queue[Event]] = {}
        engine.deliver = self._deliver

    def _deliver(self, batch: Batch) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._dispatch, batch)

    def _dispatch(self, batch: Batch) -> None:
        for ticket, event in batch:
            queue = self._queues.get(ticket)
            if queue is not None:
                queue.put_nowait(event)

    async def run(self, request: Generation) -> AsyncGenerator[Delta | Finished, None]:
        """The events of a request, until each of its choices has finished. Raises Fault, at once or on the way."""
        ticket = self._engine.submit(request)
        queue = self._queues[ticket] = asyncio.Queue()
        left = request.n
        try:
            while left:
                event = await queue.get()
                if isinstance(event, Failed):
                    left = 0
                    raise event.fault
                if isinstance(event, Finished):
                    left -= 1
                yield event
        finally:
            del self._queues[ticket]
            if left:
                self._engine.cancel(ticket)
