"""The case runner: it runs cases against a target and returns one result for each.

A case whose model did not cooperate is retried once. The first 401 ends the run, and so does a 403 before any success,
as every other case would get the same status; a 401 or 403 from the fake provider behind a proxy does not. If a case
with `probe` finds that its protocol is not served, it is skipped with the other cases of the protocol. Hostile cases
run last. Cases run one at a time unless `concurrency` allows more. A proxy that is driven through its fake provider
always gets one case at a time, and its responses are never shared; other cases share the response to the same request
(`response_cache.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from .dialects import load_dialect
from .exchange import BusyError, DroppedError, Exchange, Response, SlowReplyError, Transport, UnreachableError
from .json_types import JsonValue
from .model import Case, Step
from .pacing import Pacer
from .placeholders import MissingValueError
from .response_cache import RequestKey, ResponseCache, list_unsent_requests
from .routes import read_protocol
from .served import is_not_served
from .step_checks import list_unreached_steps
from .step_runner import DrivenUpstream, StepRunner
from .target import Target
from .verdicts import CaseResult, StepResult, decide_verdict

__all__ = ["CaseRunner", "DrivenUpstream", "find_skip_reason", "sort_cases"]

ATTEMPTS = 2
_MOST_UNREACHABLE, _MOST_SLOW = 2, 4
_MOST_CHARACTERS = 200


@dataclass
class CaseRunner:
    """The state of one run. `stop_reason` says why no further request is sent; `unserved` maps a protocol that is not
    served to the reason."""

    target: Target
    transport: Transport
    upstream: DrivenUpstream | None = None
    budget: int | None = None
    concurrency: int = 1
    pacer: Pacer = field(default_factory=Pacer)
    stop_reason: str = ""
    unserved: dict[str, str] = field(default_factory=dict)
    tokens: int = 0

    def __post_init__(self) -> None:
        self._cache = ResponseCache(self.transport)
        self._steps = StepRunner(self.target, self._cache, self.pacer, self.upstream)
        self._unanswered: list[type[UnreachableError]] = []
        self._has_success = False

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
        async for result in self._iterate_results(sort_cases(cases)):
            found[result.case.id] = result
            on_result(result)
        return [found[case.id] for case in cases]

    async def _iterate_results(self, cases: Sequence[Case]) -> AsyncIterator[CaseResult]:
        limit = asyncio.Semaphore(1 if self.upstream is not None else self.concurrency)

        async def run_one(case: Case) -> CaseResult:
            async with limit:
                return await self.run_case(case)

        for alone, group in _group_cases(cases):
            if alone or self.concurrency <= 1 or self.upstream is not None:
                for case in group:
                    yield await self.run_case(case)
            else:
                for task in asyncio.as_completed([asyncio.ensure_future(run_one(case)) for case in group]):
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
            if not _may_differ_next_time(result) or self._exceeds_budget(result.tokens + case.max_tokens):
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
        tokens = self._tokens_due(case)
        if tokens and self._exceeds_budget(tokens):
            return f"{tokens} more tokens would exceed the budget of {self.budget} tokens"
        return ""

    def _exceeds_budget(self, tokens: int) -> bool:
        return self.budget is not None and self.tokens + tokens > self.budget

    def _tokens_due(self, case: Case) -> int:
        """The most tokens that the model writes if the case runs now."""
        return case.max_tokens if list_unsent_requests(case, self.target, self._cache.keys) else 0

    async def _attempt(self, case: Case, *, share: bool) -> CaseResult:
        """Run the steps until one has a wrong status, or a model that does not do its part. A later step may show a
        broken MUST although an earlier one has broken a check."""
        steps: list[StepResult] = []
        saved: dict[str, JsonValue] = {}
        seen: set[RequestKey] | None = set() if share else None
        missing = ""
        for number, step in enumerate(case.steps):
            try:
                result, more = await self._steps.run_step(step, case, saved, seen)
            except UnreachableError as error:
                self._unanswered.append(type(error))
                left = _add_exchange(list_unreached_steps(case, number), getattr(error, "exchange", None))
                return CaseResult(case, "error", str(error), (*steps, *left))
            except MissingValueError as error:
                missing = f"step {number + 1}: {error}"
                steps += list_unreached_steps(case, number)
                break
            steps.append(result)
            saved |= more
            other = _find_other_protocol(step, result)
            if other:
                return CaseResult(case, "skip", other, tuple(steps))
            if _ends_case(result):
                steps += list_unreached_steps(case, number + 1)
                break
        verdict, reason = decide_verdict([check for step in steps for check in step.checks])
        if missing and verdict not in ("fail", "inconclusive"):
            verdict, reason = "fail", missing
        return CaseResult(case, verdict, reason, tuple(steps))

    def _record_result(self, case: Case, result: CaseResult) -> None:
        """Count the tokens, and note whether later cases can run."""
        self.tokens += result.tokens
        crashed = self._has_success and self._unanswered[-1:] == [DroppedError]  # a request; others may be answered
        if result.verdict == "error" and not crashed:
            self._stop_if_unanswered(result)
        else:
            self._unanswered.clear()
        response = _last_response(result)
        if response is None:
            return
        refused = response.status == 401 or (response.status == 403 and not self._has_success)
        if refused and not case.upstreams and response.status not in case.steps[-1].expect.status:
            self.stop_reason = f"the endpoint answered {response.status} to {case.id}: is the key right?"
        self._has_success |= response.status < 400
        if case.probe and result.verdict != "pass" and is_not_served(response):
            self.unserved[case.protocol] = _describe_unserved(case, response, self.target)

    def _stop_if_unanswered(self, result: CaseResult) -> None:
        """End the run if the endpoint is gone, still busy, or too slow for several cases in a row."""
        most = _MOST_SLOW if self._unanswered[-1:] == [SlowReplyError] else _MOST_UNREACHABLE
        if len(self._unanswered) >= most:
            words = {
                SlowReplyError: "was too slow",
                BusyError: "was too busy",
                DroppedError: "closed the connection",
            }
            what = words.get(self._unanswered[-1], "could not be reached")
            number = len(self._unanswered)
            self.stop_reason = f"the endpoint {what} {number} times in a row, last in {result.case.id}: {result.reason}"


def _group_cases(cases: Sequence[Case]) -> list[tuple[bool, list[Case]]]:
    """Split sorted cases into probes, ordinary and hostile cases; True says that they run one at a time."""
    return [
        (True, [case for case in cases if case.probe]),
        (False, [case for case in cases if not case.probe and not case.hostile]),
        (True, [case for case in cases if case.hostile and not case.probe]),
    ]


def _find_other_protocol(step: Step, result: StepResult) -> str:
    """Say that the proxy asked the provider only for protocols that the step is not about; empty if it did not."""
    plan, log = step.upstream, result.upstream
    if plan is None or not plan.protocol or log is None or not log.received:
        return ""
    asked = {read_protocol(log.dialect, request.path, request.body) for request in log.received}
    if plan.protocol in asked:
        return ""
    return f"the proxy asks the provider for {' and '.join(sorted(asked))}, the case is about {plan.protocol}"


def _ends_case(result: StepResult) -> bool:
    return any(check.state == "broken" and (check.name == "status" or check.cooperation) for check in result.checks)


def _may_differ_next_time(result: CaseResult) -> bool:
    """Whether the model did not cooperate. A status, or a stream that nobody asked for, is the endpoint's own."""
    decided = any(check.name == "status" and check.state == "broken" for check in result.checks)
    return result.verdict == "inconclusive" and not decided


def _add_exchange(steps: list[StepResult], exchange: Exchange | None) -> list[StepResult]:
    """Keep an exchange without a judgement in the wire log."""
    return [replace(steps[0], exchange=exchange), *steps[1:]] if exchange is not None and steps else steps


def _describe_unserved(case: Case, response: Response, target: Target) -> str:
    text = " ".join(response.body.decode("utf-8", "replace").split())[:_MOST_CHARACTERS]
    root = load_dialect(case.dialect).root
    no_root = root not in target.base_url
    hint = f"; the base URL of an endpoint of {case.dialect} usually ends with {root}" if no_root else ""
    return f"{case.protocol} is not served: {case.id} got {response.status}{f' {text}' if text else ''}{hint}"


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


def sort_cases(cases: Sequence[Case]) -> list[Case]:
    """Sort the cases as they run: probes first, hostile ones last."""
    return sorted(cases, key=lambda case: (not case.probe, case.hostile))


def _last_response(result: CaseResult) -> Response | None:
    exchanges = [step.exchange for step in result.steps if step.exchange is not None]
    return exchanges[-1].response if exchanges else None
