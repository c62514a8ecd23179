"""The case runner: it runs cases against a target and returns one result for each.

A case whose model did not cooperate is retried once. The first 401 or 403 ends the run, as every other case would get
the same status; a 401 or 403 from the fake provider behind a proxy does not. If a case with `probe` finds nothing at
the address of its protocol, it is skipped with the other cases of the protocol. Cases run one at a time unless
`concurrency` allows more. A proxy that is driven through its fake provider always gets one case at a time, and its
responses are never shared; other cases share the response to the same request (`response_cache.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from .dialects import load_dialect
from .exchange import CLIENT_CLOSED_REQUEST, Exchange, Request, Response, Transport, UnreachableError
from .json_types import JsonValue
from .model import Case, Step
from .outcome import Outcome, UpstreamRequest
from .placeholders import MissingValueError
from .response_cache import RequestKey, ResponseCache, list_unsent_requests, request_key
from .step_checks import list_unreached_steps, read_saved_values, run_checks
from .target import Target, build_request
from .verdicts import CaseResult, StepResult, UpstreamLog, decide_verdict

__all__ = ["CaseRunner", "DrivenUpstream", "find_skip_reason", "sort_probes_first"]

ATTEMPTS = 2
_KEY_REFUSED = (401, 403)
_NOT_SERVED = (404, 405, 501)
_MOST_UNREACHABLE = 2


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


@dataclass
class CaseRunner:
    """The state of one run. `stop_reason` says why no further request is sent; `unserved` maps a protocol without an
    address to the reason."""

    target: Target
    transport: Transport
    upstream: DrivenUpstream | None = None
    budget: int | None = None
    concurrency: int = 1
    stop_reason: str = ""
    unserved: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    unreachable: int = 0

    def __post_init__(self) -> None:
        self._cache = ResponseCache(self.transport)

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return self._cache.requests

    async def run_cases(
        self, cases: Sequence[Case], on_result: Callable[[CaseResult], object] = lambda _: None
    ) -> list[CaseResult]:
        """Run the cases and return their results in the same order. `on_result` gets each result as soon as it is
        known."""
        found = {}
        async for result in self._iterate_results(sort_probes_first(cases)):
            found[result.case.id] = result
            on_result(result)
        return [found[case.id] for case in cases]

    async def _iterate_results(self, cases: Sequence[Case]) -> AsyncIterator[CaseResult]:
        if self.concurrency <= 1 or self.upstream is not None:
            for case in cases:
                yield await self.run_case(case)
            return
        probes = [case for case in cases if case.probe]
        for case in probes:
            yield await self.run_case(case)
        limit = asyncio.Semaphore(self.concurrency)

        async def run_one(case: Case) -> CaseResult:
            async with limit:
                return await self.run_case(case)

        tasks = [asyncio.ensure_future(run_one(case)) for case in cases if not case.probe]
        for task in asyncio.as_completed(tasks):
            yield await task

    async def run_case(self, case: Case) -> CaseResult:
        """Run one case, or skip it with the reason."""
        reason = find_skip_reason(case, self.target) or self._find_stop_reason(case)
        if reason:
            return CaseResult(case, "skip", reason)
        started = time.monotonic()
        share = self.upstream is None
        tokens = self._tokens_due(case) if share else case.max_tokens
        result = replace(await self._attempt(case, share=share), tokens=tokens)
        for attempt in range(2, ATTEMPTS + 1):
            if result.verdict != "inconclusive":
                break
            result = replace(await self._attempt(case, share=False), attempts=attempt, tokens=tokens + case.max_tokens)
        self._record_result(case, result)
        if case.probe and case.protocol in self.unserved:
            result = CaseResult(case, "skip", self.unserved[case.protocol], result.steps)
        return replace(result, seconds=time.monotonic() - started)

    def _find_stop_reason(self, case: Case) -> str:
        if self.stop_reason:
            return self.stop_reason
        if case.protocol in self.unserved:
            return self.unserved[case.protocol]
        if self.budget is not None and self.tokens + self._tokens_due(case) > self.budget:
            return f"{self._tokens_due(case)} more tokens would exceed the budget of {self.budget} tokens"
        return ""

    def _tokens_due(self, case: Case) -> int:
        """The most tokens that the model writes if the case runs now."""
        return case.max_tokens if list_unsent_requests(case, self.target, self._cache.keys) else 0

    async def _attempt(self, case: Case, *, share: bool) -> CaseResult:
        steps: list[StepResult] = []
        saved: dict[str, JsonValue] = {}
        seen: set[RequestKey] | None = set() if share else None
        for number, step in enumerate(case.steps):
            try:
                result, more = await self._run_step(step, case, saved, seen)
            except UnreachableError as error:
                return CaseResult(case, "error", str(error), (*steps, *list_unreached_steps(case, number)))
            except MissingValueError as error:
                reason = f"step {number + 1}: {error}"
                return CaseResult(case, "fail", reason, (*steps, *list_unreached_steps(case, number)))
            steps.append(result)
            saved |= more
            if any(check.state == "broken" for check in result.checks):
                steps += list_unreached_steps(case, number + 1)
                break
        verdict, reason = decide_verdict([check for step in steps for check in step.checks])
        return CaseResult(case, verdict, reason, tuple(steps))

    async def _run_step(
        self, step: Step, case: Case, saved: Mapping[str, JsonValue], seen: set[RequestKey] | None
    ) -> tuple[StepResult, dict[str, JsonValue]]:
        """Run one step. `seen` has the requests that the case has sent so far; with None it shares no response."""
        request, body = build_request(step, case, self.target, saved)
        script = step.upstream.script if step.upstream else ()
        if self.upstream is not None:
            await self.upstream.load_script(script)
        started = time.monotonic()
        response = await self._send(request, seen)
        exchange = Exchange(request, response, time.monotonic() - started)
        log = self._log_upstream(script)
        outcome = Outcome(
            dialect=case.dialect,
            profile=self.target.schema_profile,
            protocol=step.request.get("protocol", case.protocol),
            model=self.target.model,
            key=self.target.key or "",
            request=body,
            response=response,
            saved=saved,
            sent=log.received if log else (),
            upstream=self.upstream.dialect if self.upstream else None,
            upstream_profile=self.upstream.profile if self.upstream else "actual",
            upstream_released=bool(request.leave and self.upstream and await self.upstream.wait_for_disconnects()),
        )
        return StepResult(run_checks(step, outcome, case), exchange, log), read_saved_values(step, outcome)

    async def _send(self, request: Request, seen: set[RequestKey] | None) -> Response:
        if request.leave and self.upstream:
            return await self._send_and_leave(request, self.upstream)
        if seen is None or request_key(request) in seen:
            return await self._cache.send(request)
        seen.add(request_key(request))
        return await self._cache.fetch(request)

    async def _send_and_leave(self, request: Request, upstream: DrivenUpstream) -> Response:
        """Send a request, disconnect early, and return what has arrived. Raises UnreachableError if the request could
        not be sent."""
        if request.leave == "begun":
            return await self._cache.send(replace(request, wait_for_upstream=upstream.wait_for_request))
        sending = asyncio.ensure_future(self._cache.send(request))
        waiting = asyncio.ensure_future(upstream.wait_for_request())
        await asyncio.wait((sending, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if sending.done():
            return sending.result()
        sending.cancel()
        await asyncio.wait((sending,))
        return Response(CLIENT_CLOSED_REQUEST, (), (), "the client left")

    def _log_upstream(self, script: tuple[str, ...]) -> UpstreamLog | None:
        if self.upstream is None:
            return None
        received = tuple(self.upstream.received_requests())
        return UpstreamLog(self.upstream.dialect, self.upstream.origin, script, received)

    def _record_result(self, case: Case, result: CaseResult) -> None:
        """Count the tokens, and note whether later cases can run."""
        self.tokens += result.tokens
        self.unreachable = self.unreachable + 1 if result.verdict == "error" else 0
        if self.unreachable >= _MOST_UNREACHABLE:
            self.stop_reason = f"the endpoint could not be reached {self.unreachable} times: {result.reason}"
        response = _last_response(result)
        if response is None or result.verdict == "pass":
            return
        if (
            response.status in _KEY_REFUSED
            and not case.upstreams
            and response.status not in case.steps[-1].expect.status
        ):
            self.stop_reason = f"the endpoint answered {response.status} to {case.id}: is the key right?"
        if case.probe and response.status in _NOT_SERVED:
            root = load_dialect(case.dialect).root
            no_root = root not in self.target.base_url
            hint = f"; the base URL of an endpoint of {case.dialect} usually ends with {root}" if no_root else ""
            self.unserved[case.protocol] = f"{case.protocol} is not served: {case.id} got {response.status}{hint}"


def find_skip_reason(case: Case, target: Target) -> str:
    """Say why the case does not apply to the target, empty if it does."""
    if case.dialect != target.dialect:
        return f"the case is for {case.dialect}"
    if target.protocols and case.protocol not in target.protocols:
        return f"--protocol leaves out {case.protocol}"
    if case.profiles and target.schema_profile not in case.profiles:
        return f"the case is for the profile {' or '.join(case.profiles)}"
    if "key" in case.needs and target.key is None:
        return "the case needs an API key"
    missing = sorted(case.needs & target.without)
    if missing:
        return f"the case needs {', '.join(missing)}"
    if case.upstreams and target.upstream is None:
        return "the case drives a proxy (--upstream)"
    if case.upstreams and target.upstream not in case.upstreams:
        return f"the case is for a proxy in front of {' or '.join(case.upstreams)}"
    return ""


def sort_probes_first(cases: Sequence[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: not case.probe)


def _last_response(result: CaseResult) -> Response | None:
    exchanges = [step.exchange for step in result.steps if step.exchange is not None]
    return exchanges[-1].response if exchanges else None
