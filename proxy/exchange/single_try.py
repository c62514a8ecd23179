"""One try of one target: within the limits of its provider, and judged for the target's health."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Outcome
from dragoman.proxy.routing.health import Verdict
from dragoman.proxy.routing.rate_limits import Limiter
from dragoman.proxy.routing.retry_table import find_rule
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.token_counts import read_token_counts

from .context import RequestContext
from .downstream import DownstreamResponse
from .transfer import Transfer

__all__ = ["run_try"]


def run_try(
    ctx: RequestContext, candidate: Candidate, attempt: Attempt, downstream: DownstreamResponse
) -> Coroutine[Any, Any, Fault | None]:
    """Make a try. Returns None if it wrote to the client, even if it ended with an error event, else why it failed, or
    why its provider gets no more calls for now. Raises ClientDisconnected."""
    limiter = candidate.provider.limiter
    if limiter is None:
        return _try(ctx, candidate, attempt, downstream)
    return _try_within_limits(limiter, ctx, candidate, attempt, downstream)


async def _try_within_limits(
    limiter: Limiter, ctx: RequestContext, candidate: Candidate, attempt: Attempt, downstream: DownstreamResponse
) -> Fault | None:
    if (refusal := (await limiter.admit(len(attempt.calls))).refusal) is not None:
        return refusal
    try:
        return await _try(ctx, candidate, attempt, downstream)
    finally:
        limiter.settle(read_token_counts(attempt.answer.usage).total)


async def _try(
    ctx: RequestContext, candidate: Candidate, attempt: Attempt, downstream: DownstreamResponse
) -> Fault | None:
    began = ctx.record.elapsed_ms()
    candidate.health.begin()
    try:
        downstream.begin(attempt)
        await Transfer(ctx, candidate, attempt, downstream).run()
    finally:
        outcome = attempt.outcome
        _judge(ctx, candidate, outcome, began, was_called=bool(attempt.calls))
        ctx.record.usage = attempt.answer.usage or ctx.record.usage  # also if the client leaves
    if outcome.fault is not None and not attempt.answer.has_begun:
        outcome.fault.__traceback__ = None  # its frames refer to the attempt, and that to the fault
        return outcome.fault
    await downstream.end()
    return None


def _judge(ctx: RequestContext, candidate: Candidate, outcome: Outcome, began: float, *, was_called: bool) -> None:
    """Keep in mind what a try shows of its target, and log it if the target pauses from now on. `began` says when the
    try did, in milliseconds of the exchange."""
    fault = outcome.fault
    verdict: Verdict = "answered" if outcome.state == "complete" and was_called else "unknown"
    verdict = verdict if fault is None else find_rule(fault).verdict
    pause = candidate.health.end(verdict, None if fault is None else fault.retry_after)
    if verdict == "answered":
        candidate.health.measure(((ctx.record.first_token_ms or ctx.record.elapsed_ms()) - began) / 1000)
    if pause and fault is not None:
        found = {"request_id": ctx.record.request_id, "target": candidate.label, "seconds": round(pause, 1)}
        ctx.log.warning("target_pauses", **found, fault=fault.code or fault.kind)
