"""Runs one step of a case: it sends the request, waits while the server is busy, and checks the reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .exchange import (
    CLIENT_CLOSED_REQUEST,
    BusyError,
    Exchange,
    Request,
    Response,
    SlowReplyError,
)
from .json_types import JsonObject, JsonValue
from .model import Case, Step
from .outcome import Outcome, UpstreamRequest
from .pacing import Pacer, is_busy
from .response_cache import RequestKey, ResponseCache, request_key
from .step_checks import read_saved_values, run_checks
from .target import Target, build_request
from .verdicts import StepResult, UpstreamLog

__all__ = ["DrivenUpstream", "StepRunner"]

_HOSTILE_TIMEOUT = 20.0


class DrivenUpstream(Protocol):
    """The provider behind a proxy under test, which the suite scripts and observes."""

    dialect: str
    profile: str

    @property
    def origin(self) -> str: ...

    async def load_script(self, script: Sequence[str]) -> None:
        """Forget earlier requests, and play these behaviours from now on."""

    def received_requests(self) -> Sequence[UpstreamRequest]: ...

    async def wait_for_request(self) -> None:
        """Wait until a request arrives, with a timeout."""

    async def wait_for_disconnects(self) -> bool:
        """Wait until the proxy has closed every request before the end of its reply. Return False at the timeout."""


@dataclass(frozen=True, slots=True)
class StepRunner:
    """What the steps of a run share."""

    target: Target
    cache: ResponseCache
    pacer: Pacer
    upstream: DrivenUpstream | None = None

    async def run_step(
        self, step: Step, case: Case, saved: Mapping[str, JsonValue], seen: set[RequestKey] | None
    ) -> tuple[StepResult, dict[str, JsonValue]]:
        """Run one step; return its result and the values that it saves. `seen` has the requests that the case has sent
        so far; with None it shares no response. Raises UnreachableError, SlowReplyError, BusyError, MissingValueError.
        """
        request, body = build_request(step, case, self.target, saved)
        if case.hostile:
            request = replace(request, timeout=_HOSTILE_TIMEOUT)
        exchange = await self._exchange_patiently(step, request, seen)
        outcome = await self._build_outcome(step, case, exchange, body, saved)
        if exchange.response.has_timed_out and self.upstream is None and not outcome.has_ended:
            raise SlowReplyError(_describe_slow_reply(outcome), exchange)
        result = StepResult(run_checks(step, outcome, case), exchange, self._log_upstream(step), outcome)
        return result, read_saved_values(step, outcome)

    async def _exchange_patiently(self, step: Step, request: Request, seen: set[RequestKey] | None) -> Exchange:
        """Send the request until the server is not busy. Raises BusyError once that takes too long."""
        waited, attempt = 0.0, 0
        while True:
            exchange = await self._exchange(step, request, seen)
            response = exchange.response
            self.pacer.observe(response)
            if not self._must_wait(step, response):
                return exchange
            wait = self.pacer.plan_retry(response, attempt, waited)
            if wait is None:
                raise BusyError(_describe_busy_server(response, waited), exchange)
            waited, attempt = waited + wait, attempt + 1

    def _must_wait(self, step: Step, response: Response) -> bool:
        """Whether the server itself is busy: not if the case expects that status, and not if a proxy passes on what the
        fake provider behind it says."""
        if not is_busy(response) or response.status in step.expect.status:
            return False
        return self.upstream is None or not self.upstream.received_requests()

    async def _exchange(self, step: Step, request: Request, seen: set[RequestKey] | None) -> Exchange:
        if self.upstream is not None:
            await self.upstream.load_script(step.upstream.script if step.upstream else ())
        await self.pacer.wait_turn()
        started = time.monotonic()
        response = await self._send(request, seen)
        return Exchange(request, response, time.monotonic() - started)

    async def _send(self, request: Request, seen: set[RequestKey] | None) -> Response:
        if request.leave and self.upstream:
            return await self._send_and_leave(request, self.upstream)
        if seen is None or request_key(request) in seen:
            return await self.cache.send(request)
        seen.add(request_key(request))
        return await self.cache.fetch(request)

    async def _send_and_leave(self, request: Request, upstream: DrivenUpstream) -> Response:
        """Send a request, disconnect early, and return what has arrived. Raises UnreachableError if the request could
        not be sent."""
        if request.leave == "begun":
            return await self.cache.send(replace(request, wait_for_upstream=upstream.wait_for_request))
        sending = asyncio.ensure_future(self.cache.send(request))
        waiting = asyncio.ensure_future(upstream.wait_for_request())
        await asyncio.wait((sending, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if sending.done():
            return sending.result()
        sending.cancel()
        await asyncio.wait((sending,))
        return Response(CLIENT_CLOSED_REQUEST, (), (), "the client left")

    async def _build_outcome(
        self, step: Step, case: Case, exchange: Exchange, body: JsonObject, saved: Mapping[str, JsonValue]
    ) -> Outcome:
        upstream = self.upstream
        return Outcome(
            dialect=case.dialect,
            profile=self.target.schema_profile,
            protocol=step.request.get("protocol", case.protocol),
            model=self.target.model,
            key=self.target.key or "",
            request=body,
            response=exchange.response,
            saved=saved,
            sent=tuple(upstream.received_requests()) if upstream else (),
            upstream=upstream.dialect if upstream else None,
            upstream_profile=upstream.profile if upstream else "actual",
            upstream_released=bool(exchange.request.leave and upstream and await upstream.wait_for_disconnects()),
        )

    def _log_upstream(self, step: Step) -> UpstreamLog | None:
        if self.upstream is None:
            return None
        script = step.upstream.script if step.upstream else ()
        return UpstreamLog(
            self.upstream.dialect, self.upstream.origin, script, tuple(self.upstream.received_requests())
        )


def _describe_busy_server(response: Response, waited: float) -> str:
    asked = response.header("retry-after")
    more = f", retry-after: {asked}" if asked else ""
    return f"the server is busy: {response.status}{more}, after {waited:g} s of waiting (--max-wait)"


def _describe_slow_reply(outcome: Outcome) -> str:
    so_far = f"{len(outcome.events)} events" if outcome.is_sse else f"{len(outcome.response.body)} bytes"
    return f"the reply has {outcome.response.broken} (--timeout); {so_far} had arrived"
