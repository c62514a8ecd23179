"""Asking a model's targets, one after the other, until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from random import uniform
from typing import TypeVar

from aiohttp.web_request import BaseRequest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.dialect import Batching, Called
from dragoman.adapters.faults import Fault
from dragoman.adapters.routes import Route
from dragoman.adapters.translate.bridge import Bridge, bridges
from dragoman.proxy.conversations.turn import Turn
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.routing.state import Candidate
from dragoman.proxy.telemetry.log import Log, Note
from dragoman.proxy.upstreams.errors import chance_of
from dragoman.proxy.upstreams.interface import Incoming

__all__ = ["MOST_ATTEMPTS", "Asked", "Attempt", "first_answer", "mended", "open_upstream", "written"]

MOST_ATTEMPTS = 3
"""Tries in one exchange, second tries of the same target included. A try may be several calls."""

_JITTER = (0.05, 0.25)  # seconds before the same target is asked again
_PASSED = ("traceparent", "tracestate")

_T = TypeVar("_T")


@dataclass(slots=True)
class Asked:
    """A client's request, and what goes with it through the exchange."""

    request: BaseRequest
    route: Route
    ctx: Context
    note: Note
    clock: Clock
    log: Log
    turn: Turn | None = None
    """Where the protocol is Responses."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The request, written for one target. `parts` are the attempts that it is made of where one call cannot hold it;
    `call` is then the first of theirs."""

    candidate: Candidate
    called: Called
    ctx: Context
    call: Call
    bridge: Bridge | None = None
    parts: tuple[Attempt, ...] = ()

    @property
    def batching(self) -> Batching | None:
        return self.called.batching if self.bridge is None else self.bridge.batching


def never() -> bool:
    return False


async def first_answer(
    asked: Asked,
    candidates: Iterator[Candidate],
    ask: Callable[[Attempt], Awaitable[_T]],
    committed: Callable[[], bool] = never,
) -> _T:
    """What `ask` returns for the first target that answers. Once the exchange is `committed`, no other target is asked.

    Raises Fault: the last target's, or, where none could be asked at all, the first reason why.
    """
    refused: Fault | None = None
    failed: Fault | None = None
    for candidate in candidates:
        try:
            attempt = written(asked.ctx, asked.route.protocol, candidate, asked.turn)
        except Fault as fault:
            if fault.owner != "client":
                raise
            refused = refused or fault
            continue
        for again in (True, False, False):  # the third only where a provider has forgotten what it was to continue
            if not _begin(asked, attempt):
                break
            try:
                return await ask(attempt)
            except Fault as fault:
                failed = fault
            if asked.turn is not None and asked.turn.forgotten(failed) and not committed():
                attempt = written(asked.ctx, asked.route.protocol, candidate, asked.turn)
                continue
            chance = chance_of(failed)
            if committed() or asked.note.attempts >= MOST_ATTEMPTS or not chance.elsewhere:
                raise failed
            if not (again and chance.again):
                break
            await asyncio.sleep(uniform(*_JITTER))
    raise failed or refused or Fault("upstream_unavailable", "the model has no target", code="no_target")


async def open_upstream(asked: Asked, attempt: Attempt) -> Incoming:
    """Send the attempt's call. Raises Fault."""
    headers = asked.request.headers
    passed = {name: headers[name] for name in _PASSED if name in headers}
    passed["x-request-id"] = asked.note.request_id
    upstream = attempt.candidate.provider.upstream
    stream = attempt.call.body.get("stream") is True  # a stream may be asked for whole
    incoming = await upstream.open(attempt.call, stream=stream, passed=passed, clock=asked.clock)
    asked.note.upstream_status = incoming.status
    return incoming


def written(ctx: Context, protocol: str, candidate: Candidate, turn: Turn | None = None) -> Attempt:
    """The client's request, in hub form in `ctx`, written for a target. `turn` knows what came before. Raises
    Fault, its path the client's."""
    provider = candidate.provider
    called, bridge = provider.called.get(protocol), None
    if called is None and protocol in bridges:
        bridge = bridges[protocol]
        called = provider.called.get(bridge.called)
    if called is None:
        text = (
            f"the provider {provider.name} is not used for {protocol}: its protocols are {', '.join(provider.called)}"
        )
        raise Fault("unsupported_parameter", text, ("model",), code="unsupported_protocol")
    ctx = ctx._replace(profile=provider.profile, receipt=ctx.receipt.fork(), target=candidate.target)
    if bridge is not None or (turn is not None and turn.keeps):
        ctx = ctx._replace(target=mended(ctx.target))
    if turn is not None:
        may_keep = bridge is None and provider.dialect.keeps_responses
        ctx = turn.continued(ctx, provider.name, may_keep)
    batching = (bridge or called).batching
    parts = batching.split(ctx) if batching is not None else [ctx]
    if len(parts) == 1:
        return _attempt(candidate, called, ctx, bridge)
    target = mended(ctx.target)
    attempts = tuple(_attempt(candidate, called, part._replace(target=target), bridge) for part in parts)
    return Attempt(candidate, called, ctx, attempts[0].call, bridge, attempts)


def _attempt(candidate: Candidate, called: Called, ctx: Context, bridge: Bridge | None = None) -> Attempt:
    """Raises Fault, its path as the client wrote it."""
    try:
        if bridge is not None:
            request = bridge.request(ctx.request, ctx)
            ctx = ctx._replace(request=request, needs_first_choice=bridge.needs_first_choice)
        return Attempt(candidate, called, ctx, called.write_request(ctx.request, ctx), bridge)
    except Fault as fault:
        raise fault.locate(ctx.receipt) from None


def mended(target: Target) -> Target:
    """The target with a policy under which its replies come in hub form, for translations and what is kept."""
    if target.policy.replies in ("repair", "strict"):
        return target
    return replace(target, policy=replace(target.policy, replies="repair"))


def _begin(asked: Asked, attempt: Attempt) -> bool:
    """False where the exchange has no time left for it."""
    if not asked.clock.limit(attempt.candidate.provider.timeouts.total):
        return False
    note = asked.note
    note.attempts += 1
    note.target = attempt.candidate.label
    note.receipt = attempt.ctx.receipt
    note.upstream_status = None
    return True
