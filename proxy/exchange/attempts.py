"""Attempts: the targets of a model are tried one after the other, until one answers.

What follows a failure is in `routing.retry_table`. Targets that pause (`routing.health`) are left out as long as
another one can be tried. If the first request may have been understood, the same target is tried again only after every
other one, and that is paid from its provider's `RetryBudget`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter
from random import uniform
from typing import NamedTuple

from dragoman.adapters.error_meanings import CONTEXT_LENGTH
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt
from dragoman.proxy.routing.retry_table import find_rule
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.upstreams.errors import is_unserved

from .context import RequestContext
from .downstream import DownstreamResponse
from .hedge import Race, can_hedge, has_effects
from .single_try import run_try
from .transfer import JITTER

__all__ = ["explain_refusals", "try_targets"]

_FAILURES = 500
"""From this status on a fault is one that clients try again by themselves."""


async def try_targets(
    ctx: RequestContext,
    candidates: Iterable[Candidate],
    list_after: Callable[[str], Iterable[Candidate]],
    downstream: DownstreamResponse,
    most: int,
) -> None:
    """Try targets until one has written to the client, `most` times at most, second tries of the same target included.
    As soon as the response has begun, no other target is tried. A try may make several calls. `list_after` gives the
    targets for a request that the first ones refuse for a reason of `fallbacks_for`.

    A target that turns out not to serve a protocol is tried again over a bridge, if it has one. Raises Fault: the last
    target's, or why no target could be tried; and ClientDisconnected.
    """
    tries = _Tries(ctx, downstream, most)
    others: list[Candidate] = []
    try:
        is_answered = await tries.try_each(candidates)
    except Fault:
        if not (others := tries.list_others(list_after)):
            raise
        is_answered = False
    others = others or tries.list_others(list_after)
    if not is_answered and not await tries.try_each(others):
        await tries.finish()


def _find_reason(fault: Fault) -> str | None:
    """The key of `fallbacks_for` that a fault is about."""
    if fault.code == CONTEXT_LENGTH:
        return "context_length"
    return "content_filter" if fault.kind == "content_filter" else None


class _Repetition(NamedTuple):
    """A target to be tried once more, after `wait` seconds."""

    candidate: Candidate
    wait: float


class _Tries:
    """The tries of one exchange."""

    __slots__ = ("_ctx", "_downstream", "_failed", "_is_paused", "_left", "_most", "_postponed", "_reason", "_refused")

    def __init__(self, ctx: RequestContext, downstream: DownstreamResponse, most: int) -> None:
        self._ctx = ctx
        self._downstream = downstream
        self._most = most
        self._left: Iterator[Candidate] = iter(())
        self._refused: list[tuple[Candidate, Fault]] = []
        self._failed: Fault | None = None
        self._reason: str | None = None  # of `fallbacks_for`
        self._is_paused = False  # only targets that pause are left
        self._postponed: list[_Repetition] = []

    async def try_each(self, candidates: Iterable[Candidate]) -> bool:
        """Try them until one has written to the client: True. Raises Fault, ClientDisconnected."""
        self._left = self._defer_paused(_defer_unserved(candidates, self._ctx.pipeline.route.protocol))
        try:
            while (candidate := next(self._left, None)) is not None:
                if await self._try_candidate(candidate):
                    return True
            return False
        finally:
            self._left = iter(())  # the generator refers to this object: a cycle would keep the request

    def list_others(self, list_after: Callable[[str], Iterable[Candidate]]) -> list[Candidate]:
        """The targets for the reason that one of the tried ones gave; none once the response has begun."""
        if self._reason is None or self._downstream.response is not None:
            return []
        return [*list_after(self._reason)]

    async def finish(self) -> None:
        """Make the second tries that were postponed. Raises Fault if none of them succeeds, ClientDisconnected."""
        while self._postponed:
            candidate, wait = self._postponed.pop(0)
            if await self._repeat(candidate, wait):
                return
        if self._failed is None:
            raise explain_refusals(self._refused)
        raise self._exhausted() if self._is_paused else self._failed

    def _defer_paused(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """The candidates without those that pause. Of these one is tried if no other was: the one that failed first."""
        paused = []
        for candidate in candidates:
            early = self._ctx.early
            if candidate.health.is_available or (early is not None and early.candidate is candidate):
                yield candidate
            else:
                paused.append(candidate)
        if paused and not self._ctx.record.attempts:
            self._is_paused = True
            yield min(paused, key=attrgetter("health.failed_at"))

    async def _try_candidate(
        self, candidate: Candidate, *, is_repeated: bool = False, is_bridged: bool = False
    ) -> bool:
        """True if the target has written to the client, False if another may be tried. Raises Fault if none may."""
        ctx = self._ctx
        try:
            attempt = await ctx.work(partial(ctx.pipeline.prepare, candidate.plan))
        except Fault as refusal:
            if refusal.owner != "client":
                raise
            self._refused.append((candidate, refusal))
            self._failed = None if is_bridged else self._failed
            return False
        if not self._start_try(candidate, attempt):
            return False
        fault = self._failed = await self._run(candidate, attempt)
        if fault is None:
            return True
        self._reason = _find_reason(fault) or self._reason
        rule = find_rule(fault)
        learned = candidate.assumes(ctx.pipeline.route.protocol) and is_unserved(fault)
        if self._downstream.response is not None or not (rule.next_target or learned):
            raise fault
        if learned:
            bridged = _find_bridged(ctx, candidate)
            return bridged is not None and await self._try_candidate(bridged, is_bridged=True)
        can_help = rule.verdict == "limited" or candidate.health.is_available
        was_closed = fault.code == "upstream_disconnected" and not fault.may_have_begun  # before it was used
        can_help |= rule.again == "at_once" and (was_closed or not self._is_paused)
        if is_repeated or not can_help or not self._can_repeat(candidate, attempt, fault):
            return False
        if rule.again == "at_once":
            return await self._repeat(candidate, uniform(*JITTER), is_free=not fault.may_have_begun)
        self._postponed.append(_Repetition(candidate, max(uniform(*JITTER), fault.retry_after or 0)))
        return False

    def _run(self, candidate: Candidate, attempt: Attempt) -> Awaitable[Fault | None]:
        """Make one try, or the first one and its hedge. Not a coroutine: a stream would hold one more as long as it
        runs."""
        ctx, after = self._ctx, candidate.hedge_after
        if after is None or ctx.record.attempts > 1 or not can_hedge(ctx, candidate, attempt):
            return run_try(ctx, candidate, attempt, self._downstream)
        race = Race(ctx, self._downstream, run_try)
        return race.run(candidate, attempt, after, self._find_hedge)

    async def _find_hedge(self, first: Candidate) -> tuple[Candidate, Attempt] | None:
        """Begin a try of the model's next target at the same time; None if there is none that may be asked now."""
        if self._downstream.response is not None or self._ctx.record.attempts >= self._most:
            return None
        for candidate in self._left:
            if candidate.pattern != first.pattern or not candidate.provider.slots.is_free:
                self._left = chain((candidate,), self._left)
                return None
            try:
                attempt = await self._ctx.work(partial(self._ctx.pipeline.prepare, candidate.plan))
            except Fault as refusal:
                self._refused.append((candidate, refusal))
                continue
            if can_hedge(self._ctx, candidate, attempt) and candidate.provider.retries.take():
                return (candidate, attempt) if self._start_try(candidate, attempt) else None
            self._left = chain((candidate,), self._left)
            return None
        return None

    async def _repeat(self, candidate: Candidate, wait: float, *, is_free: bool = False) -> bool:
        """Try a target once more. Raises Fault if it may not be."""
        deadline = self._ctx.deadline
        self._most += is_free  # the connection was closed before: the request has not been tried at all
        if self._ctx.record.attempts >= self._most or not (is_free or candidate.provider.retries.take()):
            raise self._exhausted()
        if deadline.time_budget <= wait and self._failed is not None:
            raise self._failed
        deadline.enter_phase("total", deadline.time_budget)
        await asyncio.sleep(wait)
        return await self._try_candidate(candidate, is_repeated=True)

    def _can_repeat(self, candidate: Candidate, attempt: Attempt, fault: Fault) -> bool:
        """Whether the same request may go to the same target again. Several calls were repeated one by one. What the
        provider would store, or do in the background, must not be there twice."""
        if find_rule(fault).again is None or len(attempt.calls) != 1:
            return False
        return not (fault.may_have_begun and has_effects(self._ctx, candidate, attempt))

    def _start_try(self, candidate: Candidate, attempt: Attempt) -> bool:
        """Begin a try. False if the exchange has no time left for it. Raises Fault if it had as many as it may."""
        record = self._ctx.record
        if record.attempts >= self._most and attempt.calls:
            raise self._exhausted()
        if not self._ctx.deadline.start_try(candidate.provider.timeouts.total) and self._ctx.early is None:
            return False
        if not record.attempts:
            candidate.provider.retries.add_request()
        record.begin_try(candidate.label, candidate.vendor, candidate.choice.price, attempt.receipt)
        return True

    def _exhausted(self) -> Fault:
        """The last fault. It asks the client not to add its own tries to all that were made."""
        fault = self._failed
        assert fault is not None
        fault.is_exhausted = fault.status >= _FAILURES and fault.kind != "upstream_timeout"
        return fault


def _defer_unserved(candidates: Iterable[Candidate], protocol: str) -> Iterator[Candidate]:
    """The candidates; those that are known not to serve the client's protocol come last, to be tried all the same."""
    later = []
    for candidate in candidates:
        if candidate.unserved and protocol not in candidate.plan.protocols:
            later.append(candidate.with_every_protocol())
        else:
            yield candidate
    yield from later


def _find_bridged(ctx: RequestContext, candidate: Candidate) -> Candidate | None:
    """The candidate without the protocol that its provider has turned out not to serve; None if it cannot serve the
    client without it."""
    client = ctx.pipeline.route.protocol
    protocol = candidate.plan.for_protocol(client).protocol
    if candidate.unserved.record(candidate.target.model, protocol):
        hint = f"check base_url of the provider {candidate.provider.name}, or set its protocols"
        found = {"request_id": ctx.record.request_id, "target": candidate.label, "protocol": protocol}
        ctx.log.warning("protocol_not_served", **found, hint=hint)
    rest = candidate.plan_again()
    return rest if client in rest.plan.protocols else None


def explain_refusals(refused: Sequence[tuple[Candidate, Fault]]) -> Fault:
    """The fault for a request that no target can serve: the first target's. If there are several, it names that target,
    because every target has reasons of its own."""
    if not refused:
        return Fault("upstream_unavailable", "the model has no target", code="no_target")
    candidate, fault = refused[0]
    count = len(refused) - 1
    if not count:
        return fault
    others = "the other target refuses" if count == 1 else f"the {count} other targets refuse"
    return replace(fault, message=f"{fault.message} (target {candidate.label}; {others} the request too)")
