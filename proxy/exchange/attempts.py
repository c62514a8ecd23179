"""Attempts: the targets of a model are tried one after the other, until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import uniform

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.upstreams.errors import retry_decision

from .context import RequestContext
from .downstream import DownstreamResponse
from .transfer import JITTER, Transfer

__all__ = ["MAX_ATTEMPTS", "explain_refusals", "try_targets"]

MAX_ATTEMPTS = 3
"""The most tries in one exchange, second tries of the same target included. A try may make several calls."""


async def try_targets(ctx: RequestContext, candidates: Iterator[Candidate], downstream: DownstreamResponse) -> None:
    """Try targets until one has written to the client. As soon as the response has begun, no other target is tried.

    Raises Fault: the last target's, or why no target could be tried; and ClientDisconnected.
    """
    refused: list[tuple[Candidate, Fault]] = []
    failed: Fault | None = None
    for candidate in candidates:
        try:
            attempt = ctx.pipeline.prepare(candidate.plan)
        except Fault as fault:
            if fault.owner != "client":
                raise
            refused.append((candidate, fault))
            continue
        for is_first in (True, False):
            if not _start_try(ctx, candidate, attempt):
                break
            failed = await _try(ctx, candidate, attempt, downstream)
            if failed is None:
                return
            decision = retry_decision(failed)
            if downstream.response is not None or ctx.record.attempts >= MAX_ATTEMPTS or not decision.next_target:
                raise failed
            if not (is_first and decision.same_target and len(attempt.calls) == 1):  # several were repeated one by one
                break
            await asyncio.sleep(uniform(*JITTER))
            attempt = ctx.pipeline.prepare(candidate.plan)
    raise failed or explain_refusals(refused)


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


async def _try(
    ctx: RequestContext, candidate: Candidate, attempt: Attempt, downstream: DownstreamResponse
) -> Fault | None:
    """None if the attempt wrote to the client, even if it ended with an error event; otherwise why it failed."""
    downstream.begin(attempt)
    await Transfer(ctx, candidate, attempt, downstream).run()
    ctx.record.usage = attempt.answer.usage or ctx.record.usage
    if attempt.outcome.fault is not None and not attempt.answer.has_begun:
        return attempt.outcome.fault
    await downstream.end()
    return None


def _start_try(ctx: RequestContext, candidate: Candidate, attempt: Attempt) -> bool:
    """Begin a try. False if the exchange has no time left for it."""
    if not ctx.deadline.start_try(candidate.provider.timeouts.total):
        return False
    record = ctx.record
    record.attempts += 1
    record.target = candidate.label
    record.receipt = attempt.receipt
    record.upstream_status = None
    return True
