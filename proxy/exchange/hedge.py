"""Hedging: if a target is silent for too long, a second one is asked too, and the first that begins to answer goes on
alone.

Each of the two tries runs in a task of its own, with a deadline and a record of its own, and the exchange's task waits
for them. Neither can write to the client before it has claimed the response; then the other task is cancelled, which
closes its connection at once. If a try fails, the other one goes on, unless the fault is the client's.

Nothing that may have effects twice is hedged: what a provider or the store keeps, background work, tools that run at
the provider. Requests that become several calls are not hedged either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from aiohttp.web_response import StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt
from dragoman.proxy.routing.retry_table import find_rule
from dragoman.proxy.routing.targets import Candidate

from .context import RequestContext
from .downstream import DownstreamResponse

__all__ = ["HEADER", "Race", "can_hedge", "has_effects"]

HEADER = "x-dragoman-hedge"
"""The response header that says which try answered a hedged request: `first` or `second`."""

_NAMES = ("first", "second")
_CLIENT_TOOLS = ("function", "custom", None)
"""The types of tools that clients run. All others run at the provider."""

RunTry: TypeAlias = Callable[[RequestContext, Candidate, Attempt, DownstreamResponse], Awaitable[Fault | None]]
FindHedge: TypeAlias = Callable[[Candidate], Awaitable[tuple[Candidate, Attempt] | None]]


def has_effects(ctx: RequestContext, candidate: Candidate, attempt: Attempt) -> bool:
    """Whether a target that gets this call twice keeps something twice, or works on it twice in the background."""
    body, protocol = attempt.calls[0].call.body, candidate.plan.for_protocol(ctx.pipeline.route.protocol).protocol
    keeps = body.get("store", protocol == "responses")  # there it is true by default
    return keeps is True or body.get("background") is True


def can_hedge(ctx: RequestContext, candidate: Candidate, attempt: Attempt) -> bool:
    """Whether the request may go to two targets at the same time, one of them this one."""
    if len(attempt.calls) != 1 or ctx.pipeline.is_stateful:
        return False
    tools = attempt.calls[0].call.body.get("tools") or []
    runs_none = isinstance(tools, list) and all(
        isinstance(one, dict) and one.get("type") in _CLIENT_TOOLS for one in tools
    )
    return runs_none and not has_effects(ctx, candidate, attempt)


class Race:
    """The tries of one exchange that run at the same time. `run_try` makes one of them."""

    __slots__ = ("_contenders", "_ctx", "_downstream", "_interruption", "_run_try", "_winner")

    def __init__(self, ctx: RequestContext, downstream: DownstreamResponse, run_try: RunTry) -> None:
        self._ctx = ctx
        self._downstream = downstream
        self._run_try = run_try
        self._contenders: list[_Contender] = []
        self._winner: _Contender | None = None
        self._interruption: Fault | None = None

    async def run(self, candidate: Candidate, attempt: Attempt, after: float, find_hedge: FindHedge) -> Fault | None:
        """Make a try, and if nothing has come of it after so many seconds, the one that `find_hedge` gives.

        Returns None if one of them wrote to the client, else the first one's fault. Raises ClientDisconnected.
        """
        self._start(candidate, attempt)
        try:
            await self._wait(after)
            if self._winner is None and self._list_running():
                second = await find_hedge(candidate)
                if second is not None and self._winner is None:
                    self._start(*second)
            while self._list_running():
                await self._wait(None)
            return self._get_outcome(self._winner or self._contenders[0])
        finally:
            await self._end()

    def claim(self, contender: _Contender) -> None:
        """Let this one write to the client, and end the other. Raises CancelledError if the other was first."""
        if self._winner is contender:
            return
        if self._winner is not None:
            raise asyncio.CancelledError
        self._winner = contender
        for other in self._contenders:
            if other is not contender:
                other.task.cancel()
        if len(self._contenders) > 1:
            name = contender.ctx.record.hedge = _NAMES[self._contenders.index(contender)]
            contender.ctx.headers = {**contender.ctx.headers, HEADER: name}
        self._downstream.continue_with(contender.ctx)
        self._downstream.begin(contender.attempt)

    def _start(self, candidate: Candidate, attempt: Attempt) -> None:
        deadline = self._ctx.deadline
        deadline.enter_phase("total", deadline.time_budget)  # each try has phases of its own
        contender = _Contender(self._ctx, self._downstream, attempt, candidate.label, self.claim)
        contender.start(self._run_try, candidate)
        self._contenders.append(contender)

    def _list_running(self) -> list[asyncio.Task[Fault | None]]:
        return [one.task for one in self._contenders if not one.task.done()]

    async def _wait(self, seconds: float | None) -> None:
        """Wait until one of them has ended. What interrupts the exchange interrupts them. Raises what they raise."""
        try:
            with self._ctx.deadline:
                await _wait_for_one(self._list_running(), seconds)
        except Fault as fault:
            self._interruption = fault
            for one in self._contenders:
                one.ctx.deadline.interrupt(fault)
        for one in self._contenders:
            if one.task.done() and not one.task.cancelled():
                one.task.result()
        if self._winner is None and self._is_refused():
            for task in self._list_running():
                task.cancel()

    def _is_refused(self) -> bool:
        """Whether the first target has said that the request itself is wrong."""
        task = self._contenders[0].task
        fault = task.result() if task.done() and not task.cancelled() else None
        return fault is not None and not find_rule(fault).next_target

    def _get_outcome(self, contender: _Contender) -> Fault | None:
        """What its task returned; the fault that interrupted it if it had not begun yet."""
        return self._interruption if contender.task.cancelled() else contender.task.result()

    async def _end(self) -> None:
        """End the tries that still run, and go on with the record of the one that counts."""
        for task in self._list_running():
            task.cancel()
        await asyncio.gather(*(one.task for one in self._contenders), return_exceptions=True)
        self._ctx.record.join((self._winner or self._contenders[0]).ctx.record)
        if self._winner is not None:
            self._downstream.continue_with(self._ctx)
        elif len(self._contenders) > 1:
            self._ctx.record.hedge = "none"
        for one in self._contenders:
            one.ctx.deadline.stop()
            del one.task  # its exception refers to frames, and these to the contender
        self._contenders.clear()  # they refer to the race
        self._winner = self._interruption = None


class _Contender(DownstreamResponse):
    """One of the tries: its context, and the response as it sees it. `claim` is called before something is written."""

    task: asyncio.Task[Fault | None]

    def __init__(
        self,
        ctx: RequestContext,
        downstream: DownstreamResponse,
        attempt: Attempt,
        label: str,
        claim: Callable[[_Contender], None],
    ) -> None:
        self.ctx = replace(ctx, record=ctx.record.fork(label, attempt.receipt))
        self.attempt = attempt
        self._downstream = downstream
        self._claim = claim

    def start(self, run_try: RunTry, candidate: Candidate) -> None:
        """Make the try in a task of its own."""
        self.task = asyncio.create_task(self._run(run_try, candidate))
        self.ctx.deadline = self.ctx.deadline.fork(self.task)

    async def _run(self, run_try: RunTry, candidate: Candidate) -> Fault | None:
        return await run_try(self.ctx, candidate, self.attempt, self)

    @property
    def response(self) -> StreamResponse | None:
        return self._downstream.response

    def begin(self, attempt: Attempt) -> None:
        """The response learns of the attempt when it is claimed."""

    def continue_with(self, ctx: RequestContext) -> None:
        raise AssertionError("a try has one context")

    async def write(self, data: bytes) -> None:
        self._claim(self)
        await self._downstream.write(data)

    def write_now(self, data: bytes) -> bool:
        return self._downstream.write_now(data)  # an attempt that has written something is the claimed one

    async def end(self) -> None:
        await self._downstream.end()

    async def fail(self, fault: Fault) -> None:
        raise AssertionError("a try ends with its own fault")

    def close(self) -> None:
        """The timers are those of the response."""


async def _wait_for_one(tasks: Sequence[asyncio.Task[Fault | None]], seconds: float | None) -> None:
    """Wait until one of the tasks has ended, or for so many seconds. Cancels none of them.

    `asyncio.wait` of Python 3.14 refers to the waiting task. If that is cancelled, its exception refers to the frames,
    and only the garbage collector frees what they hold.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = None if seconds is None else loop.call_later(seconds, wake)
    for task in tasks:
        task.add_done_callback(wake)
    try:
        await over
    finally:
        if timer is not None:
            timer.cancel()
        for task in tasks:
            task.remove_done_callback(wake)
