"""One timer for all time limits of an exchange.

An exchange is always in one phase, and each phase has a deadline. `enter_phase` stores a few values and touches the
event loop only if the new deadline is nearer than the armed timer, so it may be called for every read of a stream. If
the timer fires early, it arms itself again for the current deadline.

When a deadline passes, the exchange's task is cancelled; it is also cancelled when the client leaves. `with deadline:`
around code that waits distinguishes the two: it raises the deadline's Fault if the deadline cancelled the task, and
lets the CancelledError through if the client left. This is the only place that looks at a CancelledError. `interrupt`
ends an exchange in the same way from outside. A task that works for the exchange's task is cancelled by it and never by
the deadline; there, `with deadline:` leaves the decision to the exchange's own task. `as_fault` is the same for the two
places that run for every event of a stream.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, NamedTuple

from dragoman.adapters.faults import Fault, Kind

from .timer_wheel import Sleeper, find_group

__all__ = ["PHASES", "Deadline", "Phase"]


_NEVER = float("inf")


class Phase(NamedTuple):
    """The fault if this phase lasts too long; `text` has a place for the seconds."""

    kind: Kind
    code: str
    text: str


PHASES: dict[str, Phase] = {
    "body": Phase("request_timeout", "request_timeout", "the request body did not arrive within {:g} s"),
    "large_body": Phase("overloaded", "overloaded", "large requests took so long that this one waited for {:g} s"),
    "queue": Phase("upstream_unavailable", "upstream_busy", "no connection to the upstream was free for {:g} s"),
    "first_byte": Phase("upstream_timeout", "upstream_timeout", "the upstream sent no reply within {:g} s"),
    "answer": Phase("upstream_timeout", "upstream_timeout", "the upstream did not answer within {:g} s"),
    "first_token": Phase("upstream_timeout", "upstream_timeout", "the upstream sent no token within {:g} s"),
    "inter_token": Phase("upstream_timeout", "upstream_idle_timeout", "the upstream fell silent for {:g} s"),
    "total": Phase("upstream_timeout", "upstream_timeout", "the exchange did not end within {:g} s"),
    "store": Phase("internal", "store_timeout", "the store of responses did not answer within {:g} s"),
    "write": Phase("request_timeout", "client_write_stall", "the client did not read 32 kB within {:g} s"),
}


class Deadline:
    """May cancel the task, by default the current one. `stop` it when the exchange ends."""

    _deadline = _armed = _end = _NEVER
    _phase, _seconds, _total = "total", 0.0, 0.0
    _started: float | None = None
    _longest = 0.0
    _limit, _client_seconds = _NEVER, 0.0
    _handle: asyncio.TimerHandle | None = None
    _group: set[Sleeper] | None = None
    _fault: Fault | None = None

    def __init__(self, task: asyncio.Task[Any] | None = None) -> None:
        task = task or asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] | None = task
        self._loop = task.get_loop()
        self._base = task.cancelling()

    def start_try(self, seconds: float) -> bool:
        """Begin a try that may last this many seconds: all its phases end by then. All tries of an exchange together
        may last as long as the longest of them. False if no time is left."""
        now = self._loop.time()
        if self._started is None:
            self._started = now
        if seconds > self._longest:
            self._longest = seconds
        self._total, self._end = self._longest, self._started + self._longest
        if now + seconds < self._end:
            self._total, self._end = seconds, now + seconds
        if self._limit < self._end:
            self._total, self._end = self._client_seconds, self._limit
        return now < self._end

    def limit_exchange(self, seconds: float) -> None:
        """All tries end within this time from now on, because the client waits no longer."""
        self._limit, self._client_seconds = self._loop.time() + seconds, seconds

    def fork(self, task: asyncio.Task[Any]) -> Deadline:
        """A deadline for another task that works for the same exchange: its tries end when those of this one do."""
        made = Deadline(task)
        made._started, made._longest, made._limit = self._started, self._longest, self._limit
        made._client_seconds, made._total, made._end = self._client_seconds, self._total, self._end
        return made

    @property
    def time_budget(self) -> float:
        """How long the current try may still last."""
        return self._end - self._loop.time()

    def enter_phase(self, phase: str, seconds: float) -> None:
        """Begin a phase of PHASES that may last this many seconds, or until the try ends."""
        deadline = self._loop.time() + seconds
        if deadline > self._end:
            self._phase, self._seconds, self._deadline = "total", self._total, self._end
        else:
            self._phase, self._seconds, self._deadline = phase, seconds, deadline
        if self._deadline < self._armed:
            self._arm()

    def interrupt(self, fault: Fault) -> None:
        """Make whatever the exchange waits for raise this fault."""
        if self._fault is None and self._task is not None and not self._task.done():
            self._fault = fault
            self._task.cancel()

    def resolve_cancellation(self, error: asyncio.CancelledError) -> BaseException:
        """What to raise for a cancellation: the deadline's fault, or the same error if the client left."""
        if self._fault is None or self._task is None or asyncio.current_task() is not self._task:
            return error
        fault, self._fault = self._fault, None
        return error if self._task.uncancel() > self._base else fault

    def as_fault(self, error: BaseException) -> Fault:
        """A Fault as it is, and the deadline's fault for a CancelledError. Raises the error if the client left."""
        resolved = self.resolve_cancellation(error) if isinstance(error, asyncio.CancelledError) else error
        if isinstance(resolved, Fault):
            return resolved
        try:
            raise resolved
        finally:
            del error, resolved  # this frame is in the error's traceback: a cycle would keep the request's body

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises Fault in place of a CancelledError that the deadline caused."""
        if isinstance(error, asyncio.CancelledError) and (resolved := self.resolve_cancellation(error)) is not error:
            try:
                raise resolved from None
            finally:
                del error, resolved, trace  # as above

    def stop(self) -> None:
        """Stop the timer, and forget the task. Nothing is cancelled from now on."""
        self._disarm()
        self._armed, self._task = _NEVER, None

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        elif self._group is not None:
            self._group.discard(self)
            self._group = None

    def _arm(self) -> None:
        self._disarm()
        self._armed = self._deadline
        self._group = group = find_group(self._loop, self._armed)
        if group is None:
            self._handle = self._loop.call_at(self._armed, self.wake)
        else:
            group.add(self)

    def wake(self) -> None:
        """End the phase if its time is over, else arm the timer again."""
        self._handle = self._group = None
        if self._loop.time() < self._deadline:
            self._arm()
            return
        self._armed = _NEVER
        phase = PHASES[self._phase]
        self.interrupt(Fault(phase.kind, phase.text.format(self._seconds), code=phase.code))
