"""Responses to the client: a stream of events, or a whole body that is too large for one write.

Response headers are held until the first bytes, so an early failure still gets its true HTTP status. They are sent
with the first bytes, or alone after `hold` seconds. Then the response is committed: it can only go on, or end with an
error event.

If the client's dialect has pings, a stream that is silent for some time gets one, so that no load balancer closes the
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from aiohttp import HttpVersion11
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from dragoman.adapters.faults import Fault

from .aiohttp_responses import ChunkedResponse, SingleWriteResponse, write_chunk, write_chunk_now
from .deadline import Deadline
from .json_response import SERVER, add_server

__all__ = ["ClientDisconnected", "EventStreamResponse", "Pings", "send_large"]

_SLICE = 32 * 1024  # bytes that are written without waiting for the client
_LARGEST = 40 * 1024  # bytes of what is not sliced: what one read of the upstream becomes is mostly shorter


class ClientDisconnected(Exception):
    """Nothing more can be sent to the client. `fault` says why; it is None if the client left."""

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__("the client has left")
        self.fault = fault


async def send_large(response: SingleWriteResponse, request: BaseRequest, deadline: Deadline, stall: float) -> None:
    """Send a whole response if it is too large for the socket's buffers; aiohttp sends a small one. `stall` is how many
    seconds the client may take for each 32 kB. Raises ClientDisconnected."""
    if len(response.body) > _SLICE:
        await _send(
            response.send_in_slices(request, _SLICE, lambda: deadline.enter_phase("write", stall)),
            deadline,
        )


async def _send(sending: Awaitable[None], deadline: Deadline) -> None:
    """Raises ClientDisconnected if the client reads nothing for too long, or has left."""
    try:
        with deadline:
            await sending
    except Fault as fault:
        raise ClientDisconnected(fault) from None
    except ConnectionError:
        raise ClientDisconnected from None


class Pings(NamedTuple):
    """What is sent after so many seconds without a write."""

    after: float
    data: bytes


class EventStreamResponse:
    """A stream to the client. `get_headers` is called when the headers are sent. `stall` is how many seconds a client
    may take for 32 kB; without `pings` a silent stream stays silent."""

    __slots__ = (
        "_committing",
        "_get_headers",
        "_has_plain_chunks",
        "_hold_timer",
        "_last_write",
        "_loop",
        "_ping_timer",
        "_pinging",
        "_pings",
        "_protocol",
        "_request",
        "_stall",
        "bytes_written",
        "deadline",
        "response",
    )

    def __init__(
        self,
        request: BaseRequest,
        deadline: Deadline,
        get_headers: Callable[[], Mapping[str, str]],
        hold: float,
        stall: float,
        pings: Pings | None = None,
    ) -> None:
        self._request = request
        self._protocol = request.protocol
        self.deadline = deadline
        self._get_headers = get_headers
        self._stall = stall
        self._committing: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._hold_timer: asyncio.TimerHandle | None = self._loop.call_later(hold, self._start_commit)
        self._pings = pings
        self._last_write = 0.0
        self._ping_timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._has_plain_chunks = False  # decided after the first write
        self.response: StreamResponse | None = None
        self.bytes_written = 0

    async def write(self, data: bytes) -> None:
        """Send bytes, with the headers before the first ones. Waits while the client reads more slowly. Raises
        ClientDisconnected."""
        try:
            if self._has_plain_chunks and 0 < len(data) <= _LARGEST:
                write_chunk(self._request, data)
                if self._protocol.writing_paused:
                    self.deadline.enter_phase("write", self._stall)
                    await self._request.writer.drain()
                self._record_write(len(data))
                return
            self.deadline.enter_phase("write", self._stall)
            if self._committing is not None:  # this task sends the headers, even if it has not begun yet
                await self._committing
                self._committing = None
            elif self.response is None:
                self._stop_holding()
                self.response = self._create_response()
                if not isinstance(self.response, ChunkedResponse):  # which sends its head with the first bytes
                    await self.response.prepare(self._request)
            assert self.response is not None
            if len(data) <= _LARGEST:
                await self.response.write(data)
            else:
                await self._write_slices(self.response, data)
            if self._protocol.writing_paused:  # aiohttp looks only once in 64 kB
                await self._request.writer.drain()
        except asyncio.CancelledError as error:
            raise ClientDisconnected(self.deadline.as_fault(error)) from None
        except ConnectionError:
            raise ClientDisconnected from None
        self._has_plain_chunks = isinstance(self.response, ChunkedResponse)
        self._record_write(len(data))

    async def write_last(self, data: bytes) -> None:
        """As `write`, for the last bytes before `end`: the end of the stream goes with them if that is possible."""
        response = self.response
        is_plain = self._has_plain_chunks and 0 < len(data) <= _LARGEST
        if not is_plain or not isinstance(response, ChunkedResponse):
            return await self.write(data)
        self._has_plain_chunks = False
        self.deadline.enter_phase("write", self._stall)
        await _send(self._write_end(response, data), self.deadline)
        self._record_write(len(data))

    async def _write_end(self, response: ChunkedResponse, data: bytes) -> None:
        response.write_last(data)
        if self._protocol.writing_paused:
            await self._request.writer.drain()

    def write_now(self, data: bytes) -> bool:
        """Send bytes without waiting; False if that cannot be done, and nothing was sent."""
        size = len(data)
        if not self._has_plain_chunks or not 0 < size <= _LARGEST or not write_chunk_now(self._protocol, data):
            return False
        self._record_write(size)
        return True

    def _record_write(self, size: int) -> None:
        self.bytes_written += size
        if (pings := self._pings) is not None:
            self._last_write = self._loop.time()
            self._ping_timer = self._ping_timer or self._loop.call_later(pings.after, self._ping_if_silent, pings)

    async def _write_slices(self, response: StreamResponse, data: bytes) -> None:
        for start in range(0, len(data), _SLICE):
            self.deadline.enter_phase("write", self._stall)
            await response.write(data[start : start + _SLICE])

    async def end(self, *, broken: bool) -> None:
        """End the stream. If it is `broken`, close the connection after what was written. Raises ClientDisconnected."""
        self._stop_pings()
        transport = self._request.transport
        if broken and transport is not None:
            transport.close()
            return
        self.deadline.enter_phase("write", self._stall)
        await _send(self._get_response().write_eof(), self.deadline)

    def close(self) -> None:
        """Stop the timers, and forget the function, which usually belongs to the owner: a cycle of references."""
        self._get_headers = dict
        self._stop_holding()
        self._stop_pings()
        if self._committing is not None:
            self._committing.cancel()

    def _stop_holding(self) -> None:
        if self._hold_timer is not None:
            self._hold_timer.cancel()
            self._hold_timer = None

    def _start_commit(self) -> None:
        self._hold_timer = None
        self._committing = self._loop.create_task(self._commit())
        self._committing.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _ping_if_silent(self, pings: Pings) -> None:
        """Send a ping, which may follow any write, because every write ends an event. A failure is ignored: the next
        write fails too."""
        due = self._last_write + pings.after - self._loop.time()
        if due <= 0:
            due = pings.after
            if self._pinging is None or self._pinging.done():
                self._pinging = self._loop.create_task(self._get_response().write(pings.data))
                self._pinging.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._ping_timer = self._loop.call_later(due, self._ping_if_silent, pings)

    def _stop_pings(self) -> None:
        self._pings = None
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()

    async def _commit(self) -> None:
        """Send the head alone."""
        response = self.response = self._create_response()
        await response.prepare(self._request)

    def _create_response(self) -> StreamResponse:
        headers = self._get_headers()
        if self._request.version == HttpVersion11:
            return ChunkedResponse(self._request, {**headers, "Server": SERVER})
        return StreamResponse(headers=add_server(headers))

    def _get_response(self) -> StreamResponse:
        assert self.response is not None
        return self.response
