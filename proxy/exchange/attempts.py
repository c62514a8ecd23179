"""Attempts: the targets of a model are tried one after the other, until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import uniform

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.upstreams.errors import is_unserved, retry_decision

from .context import RequestContext
from .downstream import DownstreamResponse
from .transfer import JITTER, Transfer

__all__ = ["MAX_ATTEMPTS", "explain_refusals", "try_targets"]

MAX_ATTEMPTS = 3
"""The most tries in one exchange, second tries of the same target included. A try may make several calls."""


async def try_targets(ctx: RequestContext, candidates: Iterator[Candidate], downstream: DownstreamResponse) -> None:
    """Try targets until one has written to the client. As soon as the response has begun, no other target is tried.

    A target that turns out not to serve a protocol is tried again over a bridge, if it has one. Raises Fault: the last
    target's, or why no target could be tried; and ClientDisconnected.
    """
    refused: list[tuple[Candidate, Fault]] = []
    failed: Fault | None = None
    bridged: Candidate | None = None
    candidates = _defer_unserved(candidates, ctx.pipeline.route.protocol)
    while (candidate := bridged or next(candidates, None)) is not None:
        try:
            attempt = ctx.pipeline.prepare(candidate.plan)
        except Fault as fault:
            if fault.owner != "client":
                raise
            refused.append((candidate, fault))
            bridged, failed = None, failed if bridged is None else None
            continue
        bridged = None
        for is_first in (True, False):
            if not _start_try(ctx, candidate, attempt):
                break
            failed = await _try(ctx, candidate, attempt, downstream)
            if failed is None:
                return
            decision = retry_decision(failed)
            learned = candidate.provider.assumes_protocols and is_unserved(failed)
            can_go_on = decision.next_target or learned
            if downstream.response is not None or ctx.record.attempts >= MAX_ATTEMPTS or not can_go_on:
                raise failed
            if learned:
                bridged = _find_bridged(ctx, candidate)
                break
            if not (is_first and decision.same_target and len(attempt.calls) == 1):  # several were repeated one by one
                break
            await asyncio.sleep(uniform(*JITTER))
            attempt = ctx.pipeline.prepare(candidate.plan)
    raise failed or explain_refusals(refused)


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
        hint = f"set protocols of the provider {candidate.provider.name}"
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
