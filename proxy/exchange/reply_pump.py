"""The pump of one reply: it feeds an attempt with what arrives, until the attempt has read all that it needs.

The exchange's task reads, feeds and writes piece by piece. Most pieces are one event of a stream that has begun, and
need nothing to be waited for. For those the task sleeps: the connection of the provider calls `_take`, which feeds the
piece and writes what comes of it, and wakes the task for everything else: an output that is more than bytes, a client
that reads slowly, the end.

The replies of several calls end one after the other, and write in turn: they are read by their tasks alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import NOTHING, Attempt, Output, PlannedCall
from dragoman.proxy.telemetry.recording import CallRecording
from dragoman.proxy.upstreams.interface import UpstreamResponse

from .context import RequestContext
from .downstream import DownstreamResponse
from .large_bodies import LARGE

__all__ = ["ReplyPump"]

HandleOutput: TypeAlias = Callable[[Output], Awaitable[tuple[PlannedCall, ...]]]


class ReplyPump:
    """Feeds the reply to the call with this number."""

    __slots__ = ("_attempt", "_call", "_ctx", "_downstream", "_held", "_inter_token", "_left", "_recorder", "_response")

    def __init__(
        self,
        ctx: RequestContext,
        attempt: Attempt,
        call: int,
        response: UpstreamResponse,
        recorder: CallRecording | None,
        downstream: DownstreamResponse,
    ) -> None:
        self._ctx = ctx
        self._attempt = attempt
        self._call = call
        self._response = response
        self._recorder = recorder
        self._downstream = downstream
        self._held = 0  # bytes since the last output
        self._left = NOTHING  # of `_take`, for the task
        self._inter_token = 0.0

    async def run(
        self, handle: HandleOutput, inter_token: float, *, ending: asyncio.Lock | None, is_single: bool
    ) -> tuple[PlannedCall, ...]:
        """Feed the reply, and let `handle` do what the attempt asks for. Returns the calls that follow from it. Between
        two pieces at most `inter_token` seconds pass. With `ending` several replies end one after the other."""
        attempt, call, deadline = self._attempt, self._call, self._ctx.deadline
        self._inter_token = inter_token
        output = attempt.start_reply(call, self._response.status, self._response.headers)
        further = output.calls if output is NOTHING else await handle(output)
        while attempt.is_reading(call):
            if attempt.answer.has_begun:
                deadline.enter_phase("inter_token", inter_token)
            try:
                data = await self._read(may_deliver=is_single and attempt.answer.has_begun)
            except (Fault, asyncio.CancelledError) as error:
                return await self._cut(handle, deadline.as_fault(error))
            if data is None:
                output, self._left = self._left, NOTHING
            else:
                output = await self._feed(data, ending, is_single=is_single)
                self._held = self._held + len(data) if output is NOTHING else 0
            del data  # the client may take its time
            if output is not NOTHING:
                further = await handle(output)
            while output.more:
                await asyncio.sleep(0)  # what a few bytes decompress to must not keep others waiting
                output, self._held = attempt.resume(call), LARGE + 1
                further = await handle(output)
            if not attempt.answer.has_begun and self._response.is_at_end and attempt.is_reading(call):
                return await handle(await self._close(ending))
        return further

    async def _cut(self, handle: HandleOutput, fault: Fault) -> tuple[PlannedCall, ...]:
        """End the reply with a fault, after what has come before it."""
        left, self._left = self._left, NOTHING
        further = left.calls if left is NOTHING else await handle(left)
        is_open = left is NOTHING or self._attempt.is_reading(self._call)
        return await handle(self._attempt.close(self._call, fault)) if is_open else further

    async def _read(self, *, may_deliver: bool) -> bytes | None:
        """The next bytes, empty at the end; None if bytes were fed, and `_left` is what came of them. Raises Fault."""
        if may_deliver and self._held <= LARGE:
            await self._response.deliver(self._take)
            if self._left is not NOTHING or not self._attempt.is_reading(self._call):
                return None
        return await self._response.read_chunk()

    def _take(self, data: bytes) -> bool:
        """Feed bytes, and write what comes of them. False if the task has to go on."""
        attempt, ctx = self._attempt, self._ctx
        if self._recorder is not None:
            self._recorder.add_reply(data)
        output = attempt.feed(self._call, data)
        if output is NOTHING:
            self._held += len(data)
            return self._held <= LARGE and attempt.is_reading(self._call)
        self._held = 0
        self._left = output
        data, record, calls, more = output
        if record is not None or calls or more or attempt.outcome.state != "open" or ctx.sent_secrets.are_in(data):
            return False
        if not self._downstream.write_now(data):
            return False
        self._left = NOTHING
        ctx.record.events = attempt.answer.events
        ctx.deadline.enter_phase("inter_token", self._inter_token)
        return True

    async def _feed(self, data: bytes, ending: asyncio.Lock | None, *, is_single: bool) -> Output:
        """Feed bytes, or the end if there are none. If they may complete an event after many bytes without an output,
        other exchanges go on meanwhile."""
        attempt, call = self._attempt, self._call
        if not data:
            return await self._close(ending)
        if self._recorder is not None:
            self._recorder.add_reply(data)
        if self._held > LARGE and is_single and (b"\n" in data or b"\r" in data) and not attempt.is_collecting(call):
            return await self._ctx.worker.run(partial(attempt.feed, call, data))
        return attempt.feed(call, data)

    async def _close(self, ending: asyncio.Lock | None) -> Output:
        """End the reply, of which many bytes may be collected."""
        close = partial(self._attempt.close, self._call)
        async with ending or contextlib.nullcontext():
            return await self._ctx.worker.run(close) if self._held > LARGE else close()
