"""The client's side of a stream.

The headers are held back until there is something to say, so that an early failure keeps its real status. They go out
with the first output, or alone when `hold` seconds have passed. From then on the exchange is committed: it can only go
on, or end with an error event.

Where its client passes over comments, a stream that has begun is never silent for long: a comment every `ping` seconds
keeps load balancers from taking it for dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault

from .deadline import Clock

__all__ = ["ClientGone", "Downstream", "send_large"]

_PING = b": ping\n\n"
_BUFFERED = 64 * 1024  # bytes that are written without waiting for the client


class ClientGone(Exception):
    """Nothing more can be said to this client. `fault` tells why, where it did not simply leave."""

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__("the client is gone")
        self.fault = fault


async def send_large(response: Response, request: BaseRequest, clock: Clock, stall: float) -> None:
    """Send a whole response that may have to wait for its client. Raises ClientGone."""
    if not isinstance(response.body, bytes) or len(response.body) <= _BUFFERED:
        return  # aiohttp sends it
    clock.enter("write", stall)
    try:
        await response.prepare(request)
        await response.write_eof()
    except asyncio.CancelledError as stop:
        raise _stalled(clock.verdict(stop)) from None
    except ConnectionError:
        raise ClientGone from None


def _stalled(verdict: BaseException) -> BaseException:
    return ClientGone(verdict) if isinstance(verdict, Fault) else verdict


class Downstream:
    """`head` gives the headers when it is time to send them, `stall` is how long a client may leave a write unread,
    `ping` how long nothing may be written before a comment is; None where there are none."""

    __slots__ = (
        "_clock",
        "_head",
        "_hold",
        "_last",
        "_loop",
        "_next",
        "_ping",
        "_request",
        "_stall",
        "_task",
        "_telling",
        "response",
        "written",
    )

    def __init__(
        self,
        request: BaseRequest,
        clock: Clock,
        head: Callable[[], Mapping[str, str]],
        hold: float,
        stall: float,
        ping: float | None = None,
    ) -> None:
        self._request = request
        self._clock = clock
        self._head = head
        self._stall = stall
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._hold = self._loop.call_later(hold, self._held_long_enough)
        self._ping = ping
        self._last = 0.0
        self._next: asyncio.TimerHandle | None = None
        self._telling: asyncio.Task[None] | None = None
        self.response: StreamResponse | None = None
        self.written = 0

    @property
    def committed(self) -> bool:
        return self.response is not None

    async def write(self, data: bytes) -> None:
        """Send bytes, the headers before them; wait while the client does not keep up. Raises ClientGone."""
        self._clock.enter("write", self._stall)
        try:
            if self._task is not None:  # it may not have begun yet: there is one head, and that is its
                await self._task
                self._task = None
            elif self.response is None:
                self._hold.cancel()
                await self._commit()
            await self._response().write(data)
        except asyncio.CancelledError as stop:
            raise _stalled(self._clock.verdict(stop)) from None
        except ConnectionError:
            raise ClientGone from None
        self.written += len(data)
        if self._ping is not None:
            self._last = self._loop.time()
            self._next = self._next or self._loop.call_later(self._ping, self._silent, self._ping)

    async def end(self, *, broken: bool) -> None:
        """Close cleanly, or `broken`: flush what was written, then break the connection. Raises ClientGone."""
        self._hush()
        transport = self._request.transport
        if broken and transport is not None:
            transport.close()
            return
        self._clock.enter("write", self._stall)
        try:
            await self._response().write_eof()
        except asyncio.CancelledError as stop:
            raise _stalled(self._clock.verdict(stop)) from None
        except ConnectionError:
            raise ClientGone from None

    def close(self) -> None:
        self._hold.cancel()
        self._hush()
        if self._task is not None:
            self._task.cancel()

    def _held_long_enough(self) -> None:
        self._task = self._loop.create_task(self._commit())
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _silent(self, ping: float) -> None:
        """Every write ends an event, so that a comment may follow it. One that fails is no news: the next write is."""
        due = self._last + ping - self._loop.time()
        if due <= 0:
            due = ping
            if self._telling is None or self._telling.done():
                self._telling = self._loop.create_task(self._response().write(_PING))
                self._telling.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._next = self._loop.call_later(due, self._silent, ping)

    def _hush(self) -> None:
        self._ping = None
        if self._next is not None:
            self._next.cancel()
        if self._telling is not None:
            self._telling.cancel()

    async def _commit(self) -> None:
        response = self.response = StreamResponse(headers=self._head())
        await response.prepare(self._request)

    def _response(self) -> StreamResponse:
        assert self.response is not None
        return self.response
