"""The pump of an attempt: it sends calls to the upstream, feeds replies to the attempt, and writes to the client.

It decides nothing but the deadlines. A request may need several calls: they run at the same time, up to a limit, and
the first failure ends the others. Before it is a failure, a call that got no answer is made once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import uniform

from dragoman.adapters.faults import Fault
from dragoman.adapters.long_strings import write_json
from dragoman.adapters.pipeline import Attempt, Output, PlannedCall
from dragoman.proxy.conversations.owner_store import mask_record
from dragoman.proxy.routing.retry_table import find_rule
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.recording import CallRecording
from dragoman.proxy.telemetry.tracing import TRACE, TRACE_STATE
from dragoman.proxy.upstreams.call_slots import CallSlots
from dragoman.proxy.upstreams.interface import UpstreamResponse

from .context import RequestContext
from .downstream import DownstreamResponse
from .early_call import EarlyCall
from .reply_pump import ReplyPump

__all__ = ["JITTER", "MAX_PARALLEL_CALLS", "Transfer"]

MAX_PARALLEL_CALLS = 8
"""The most calls of one request at the same time."""

JITTER = (0.05, 0.25)
"""Seconds before something is tried again."""

_BUSY = frozenset({429, 502, 503, 504})
"""The statuses after which one of several calls is made once more."""


class Transfer:
    """Runs one attempt."""

    __slots__ = (
        "_attempt",
        "_candidate",
        "_ctx",
        "_downstream",
        "_ending",
        "_is_awaiting_stream",
        "_is_single",
        "_turn",
        "_write",
    )

    def __init__(
        self, ctx: RequestContext, candidate: Candidate, attempt: Attempt, downstream: DownstreamResponse
    ) -> None:
        self._ctx = ctx
        self._candidate = candidate
        self._attempt = attempt
        self._downstream = downstream
        self._write: Callable[[bytes], Awaitable[None]] = downstream.write
        self._is_awaiting_stream = self._is_single = False
        self._ending: asyncio.Lock | None = None

    async def run(self) -> None:
        """Make the attempt's calls, and those that follow from their replies. `attempt.outcome` says how it ended.
        Raises ClientDisconnected."""
        calls, is_first = self._attempt.calls, True
        if (recording := self._ctx.recording) is not None:
            begin = recording.begin_try if self._ctx.early is None else recording.continue_try
            begin(self._candidate.plan, self._attempt.receipt)
        if not calls:
            await self._handle(self._attempt.answer_without_calls())
        while calls:
            single = self._is_single = len(calls) == 1
            self._is_awaiting_stream = self._attempt.wants_stream and (single or calls[0].stream)
            calls = await (self._make_call(calls[0], may_repeat=not is_first) if single else self._make_calls(calls))
            is_first = False

    def _enter_first_phase(self) -> None:
        """Begin to wait for the provider."""
        timeouts, deadline = self._candidate.provider.timeouts, self._ctx.deadline
        if self._is_awaiting_stream:
            deadline.enter_phase("first_token", timeouts.first_token)
        elif timeouts.first_byte is not None and self._is_single:
            deadline.enter_phase("first_byte", timeouts.first_byte)
        else:
            deadline.enter_phase("answer", timeouts.total)

    async def _make_call(self, call: PlannedCall, *, may_repeat: bool = False) -> tuple[PlannedCall, ...]:
        """Make one call, and return the calls that follow from its reply. A transport failure fails the attempt, unless
        the call may be repeated."""
        slots = self._candidate.provider.slots
        early = self._ctx.take_early(self._candidate)
        if early is None and not slots.take():
            try:
                await self._wait_for_slot(slots)
            except (Fault, asyncio.CancelledError) as error:
                return await self._handle(self._attempt.fail(self._ctx.deadline.as_fault(error)))
        if self._is_single:
            self._enter_first_phase()
        try:
            further = await self._make_call_in_slot(call, early, may_repeat=may_repeat)
        finally:
            slots.release()
        return await self._repeat_call(call) if further is None else further

    async def _wait_for_slot(self, slots: CallSlots) -> None:
        """Wait until the provider may get one more call. Raises Fault if that takes too long, or too many wait. One of
        several calls may wait until the others have ended."""
        if self._is_single:
            self._ctx.deadline.enter_phase("queue", self._candidate.provider.longest_wait)
        await slots.wait()

    async def _make_call_in_slot(
        self, call: PlannedCall, early: EarlyCall | None, *, may_repeat: bool
    ) -> tuple[PlannedCall, ...] | None:
        """Make one call, unless it was made before; None if it got no answer and is to be repeated."""
        ctx, recorder = self._ctx, self._begin_recording(call, early)
        try:
            response = await self._send(call, recorder) if early is None else early.take()
        except (Fault, asyncio.CancelledError) as error:
            fault = ctx.deadline.as_fault(error)
            if recorder is not None:
                recorder.end(fault)
            if may_repeat and find_rule(fault).again == "at_once":
                return None
            return await self._handle(self._attempt.fail(fault))
        if recorder is not None:
            recorder.record_reply(response.status, response.headers, response.sent_secrets)
        if may_repeat and response.status in _BUSY:
            response.close()
            return None
        ctx.record.upstream_status = response.status
        ctx.sent_secrets.add(response.sent_secrets)
        return await self._pump(call, response, recorder)

    def _begin_recording(self, call: PlannedCall, early: EarlyCall | None) -> CallRecording | None:
        if (recording := self._ctx.recording) is None:
            return None
        if early is not None:
            return recording.continue_call()
        return recording.begin_call(self._candidate.label, self._attempt.receipt, call.number)

    async def _send(self, call: PlannedCall, recorder: CallRecording | None) -> UpstreamResponse:
        """Send the request, and return the response as soon as its head is there. Raises Fault."""
        ctx, sent = self._ctx, call.call
        written = await ctx.work(partial(write_json, sent.body)) if ctx.has_long_strings else None
        return await self._candidate.provider.upstream.send(
            sent, stream=call.stream, forwarded=self._list_forwarded(), recorder=recorder, written=written
        )

    async def _pump(
        self, call: PlannedCall, response: UpstreamResponse, recorder: CallRecording | None
    ) -> tuple[PlannedCall, ...]:
        """Read the reply and write it to the client. Returns the further calls. The connection stays open if the reply
        was no failure."""
        ctx, attempt, timeouts = self._ctx, self._attempt, self._candidate.provider.timeouts
        if not self._is_awaiting_stream and timeouts.first_byte is not None:
            ctx.deadline.enter_phase("answer", timeouts.total)
        try:
            pump = ReplyPump(ctx, attempt, call.number, response, recorder, self._downstream)
            inter_token = timeouts.inter_token
            further = await pump.run(self._handle, inter_token, ending=self._ending, is_single=self._is_single)
        except BaseException:
            response.close()
            if recorder is not None:
                recorder.end(attempt.outcome.fault, is_cancelled=True)
            raise
        if recorder is not None:
            recorder.end(attempt.outcome.fault)
        if attempt.outcome.fault is None:
            response.finish()
        else:
            response.close()
        return further

    def _list_forwarded(self) -> dict[str, str]:
        """The headers of every call, whatever the target."""
        record, headers = self._ctx.record, self._ctx.request.headers
        forwarded = {"x-request-id": record.request_id}
        if record.trace_headers is not None:
            return forwarded | record.trace_headers
        if TRACE in headers:
            return forwarded | {name: headers[name] for name in (TRACE, TRACE_STATE) if name in headers}
        return forwarded

    async def _repeat_call(self, call: PlannedCall) -> tuple[PlannedCall, ...]:
        """Make one of several calls once more: the others are not repeated, because they are billed."""
        await asyncio.sleep(uniform(*JITTER))
        return await self._make_call(call)

    async def _handle(self, output: Output) -> tuple[PlannedCall, ...]:
        """Save and write what the output contains, and return its further calls."""
        record, attempt = self._ctx.record, self._attempt
        if output.record is not None:
            output = await self._save(output)
        record.events = attempt.answer.events
        data = self._ctx.sent_secrets.mask(output.data, attempt.receipt)
        if (fault := attempt.outcome.fault) is not None:
            data = self._ctx.mask(data)
            if attempt.answer.has_begun:
                record.record_fault(fault)
        if data and self._is_single and attempt.outcome.state == "complete":
            await self._downstream.write_last(data)
        elif data:
            await self._write(data)
        if output.calls:
            record.attempts += 1
        return output.calls

    async def _save(self, output: Output) -> Output:
        """Save the record of an output, and return the output to continue with."""
        store, attempt = self._ctx.store, self._attempt
        assert store is not None and output.record is not None
        failed = attempt.outcome.fault is not None
        try:
            stored = mask_record(output.record, lambda data: self._ctx.sent_secrets.mask(data, attempt.receipt))
            await store.save(mask_record(stored, self._ctx.mask) if failed else stored)
        except Fault as fault:
            if not failed:
                return attempt.reject_save(fault)
            self._ctx.record.cause = fault  # the client learns of a failure anyway
        return output if failed else attempt.confirm_save()

    async def _make_calls(self, calls: Sequence[PlannedCall]) -> tuple[PlannedCall, ...]:
        slots, late = asyncio.Semaphore(MAX_PARALLEL_CALLS), None
        self._enter_first_phase()
        self._write, self._turn = self._write_in_turn, asyncio.Lock()
        self._ending = asyncio.Lock()
        tasks = [asyncio.create_task(self._make_in_slot(call, slots)) for call in calls]
        try:
            with self._ctx.deadline:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except Fault as fault:
            late = fault
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if late is not None:
            await self._handle(self._attempt.fail(late))
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, _CallFailed):
                raise error
        return ()

    async def _write_in_turn(self, data: bytes) -> None:
        """Write the bytes of one of several calls after those that the attempt gave before them."""
        assert self._turn is not None
        async with self._turn:
            await self._downstream.write(data)

    async def _make_in_slot(self, call: PlannedCall, slots: asyncio.Semaphore) -> None:
        async with slots:
            further = await self._make_call(call, may_repeat=True)
            while further:
                further = await self._make_call(further[0], may_repeat=True)
        if self._attempt.outcome.fault is not None:
            raise _CallFailed


class _CallFailed(Exception):
    """One of several calls has failed the attempt: the others end."""
