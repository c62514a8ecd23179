"""Work on large bodies, in a thread of its own, so that other exchanges go on meanwhile.

Parsing, validating and translating are pure computation. For a body of megabytes they take up to hundreds of
milliseconds, and nobody else would be served as long as they ran in the event loop. Python lets one thread run at a
time. It keeps that right (the interpreter's lock) until another thread has waited for `SWITCH` seconds, or as long as
one call into C takes: a few milliseconds for the values that a body may have. So the thread takes turns with the event
loop, which serves everyone else in between. The garbage collector waits meanwhile: it would look at every value that
a call into C has made so far, within that call.

There is one thread, so no more than one body is worked on at a time, and what that takes in memory is taken once.
Others wait in a queue; requests beyond `most_waiting` are refused, but no reply is, because it has been paid for.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import may_exceed_values
from dragoman.proxy.http.large_body import LargeBody

from .body_judge import BodyJudge, LongValues, Question, Report, Verdict

__all__ = ["LARGE", "SMALL", "SWITCH", "BodyWorker", "is_large"]

LARGE = 64 * 1024
"""Bytes of a body, or of an event, from which on the thread works on it."""

SWITCH = 0.0001
"""Seconds after which the other one runs: the thread or the event loop."""

SMALL = 8 * 1024
"""Bytes of a request up to which it is never large."""

_MANY = 1_500  # values that make a smaller body a large one, also if their marks are inside strings
_SOME = 300  # values that do so while large requests are refused: to say what is wrong with them takes milliseconds
_RETRY_AFTER = 1.0

_T = TypeVar("_T")


class BodyWorker:
    """The thread. Used inside one event loop; the thread starts with the first work. `report` logs what goes wrong with
    the process that judges requests."""

    def __init__(self, most_waiting: int, report: Report) -> None:
        self.most_waiting = most_waiting
        self._judge = BodyJudge(report)
        self._threads = ThreadPoolExecutor(1, "large-bodies")
        self._waiting = 0
        self._usual_switch = sys.getswitchinterval()

    def admit(self) -> None:
        """Refuse a large request if too many wait. Raises Fault."""
        if self._waiting >= self.most_waiting:
            text = f"{self._waiting} large requests wait to be read (server.limits.large_requests)"
            raise Fault("overloaded", text, code="overloaded", retry_after=_RETRY_AFTER)

    def wants(self, body: bytes) -> bool:
        """Whether `read` is to read a request before anyone else does: large ones are refused, and it is one of those
        that take long."""
        return self._judge.is_ready and (is_large(body) or (len(body) > SMALL and may_exceed_values(body, _SOME)))

    async def read(
        self, read: Callable[[bytes, LongValues | None], _T], question: Question, body: bytes | LargeBody
    ) -> _T:
        """What `read` makes of a large request, and of its long values, None if it is not known to be right JSON.
        Raises Fault, from `read` or from the judge."""
        try:
            known = await self._ask_judge(question, body) if self._judge.is_ready else None
            return await self.run(lambda: read(body if isinstance(body, bytes) else body.take(), known))
        except Fault as fault:
            if fault.owner == "client":
                self._judge.note_refusal()
            raise

    async def run(self, work: Callable[[], _T]) -> _T:
        """What `work` returns or raises, from the thread. If the task is cancelled meanwhile, work that runs comes to
        its end first, because nobody else may use the same objects as long as it does."""
        outcome: list[_T] = []
        failed: list[BaseException] = []
        self._begin()
        try:
            await _wait(self._threads.submit(_do, work, outcome, failed))
        finally:
            self._end()
        if not failed:
            return outcome[0]
        try:
            raise failed.pop()
        finally:
            del work  # this frame is in the error's traceback: a cycle would keep the body

    def close(self) -> None:
        """End the thread; work that runs comes to its end."""
        self._judge.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask_judge(self, question: Question, body: bytes | LargeBody) -> LongValues | None:
        """The long values of a request, None if its JSON is not known to be right. Raises Fault if anything about it is
        wrong."""
        verdict = Verdict()
        self._begin()
        try:
            await _wait(self._judge.submit(question, body, verdict))
        finally:
            self._end()
        if verdict.fault is None:
            return verdict.long_values
        try:
            raise verdict.fault
        finally:
            del verdict  # this frame is in the fault's traceback: a cycle

    def _begin(self) -> None:
        if not self._waiting:
            sys.setswitchinterval(SWITCH)
        self._waiting += 1

    def _end(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            sys.setswitchinterval(self._usual_switch)


def is_large(body: bytes) -> bool:
    """Whether a body takes so long that others would notice."""
    size = len(body)
    return size > LARGE or (size > SMALL and may_exceed_values(body, _MANY))


def _do(work: Callable[[], _T], outcome: list[_T], failed: list[BaseException]) -> None:
    """Raises nothing: a Future that holds an error is a cycle of references."""
    collects = gc.isenabled()
    gc.disable()
    try:
        outcome.append(work())
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
        failed.append(error)
    finally:
        if collects:
            gc.enable()


async def _wait(job: Future[None]) -> None:
    """Wait for the end of a job, also if the task is cancelled once it runs."""
    done = asyncio.wrap_future(job)
    try:
        await asyncio.shield(done)
    except asyncio.CancelledError:
        job.cancel()
        while not done.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        raise
