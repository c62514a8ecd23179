"""Running cases against a target, one result for each.

A case is tried again once where the model did not cooperate. The first 401 or 403 ends the run, as every other case
would get the same; not one that the fake behind a proxy was told to give. A case with `probe` that finds nothing at its
protocol's address makes the other cases of the protocol skip, and skips itself. Cases run one after the other unless
more `concurrency` is asked for; a proxy that is driven through its fake is always asked by one case at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .checks import CHECKS, SENT, Rule
from .judge import has_schema, violations
from .model import Case, Check, Step
from .outcome import Outcome, Received
from .paths import ABSENT, at
from .target import Target, written
from .values import Missing, filled
from .verdicts import CheckResult, Result, StepResult, verdict_of
from .wire import Answer, Exchange, Transport, Unreachable

__all__ = ["Behind", "Run", "skipped"]

ATTEMPTS = 2
_REFUSED = (401, 403)
_NOT_SERVED = (404, 405, 501)
_MOST_UNREACHABLE = 2


class Behind(Protocol):
    """The fake provider behind a proxy under test."""

    dialect: str
    profile: str

    async def begin(self, script: Sequence[str]) -> None:
        """Forget what was received, and behave like this from now on."""

    def received(self) -> Sequence[Received]: ...


@dataclass
class Run:
    """One run. `refused` is why nothing more is asked, `unserved` are protocols with no address."""

    target: Target
    transport: Transport
    behind: Behind | None = None
    budget: int | None = None
    concurrency: int = 1
    refused: str = ""
    unserved: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    unreachable: int = 0

    async def results(self, cases: Sequence[Case], done: Callable[[Result], object] = lambda _: None) -> list[Result]:
        """The results, in the order of the cases; `done` gets each as soon as it is there."""
        found = {}
        async for result in self._each(_probes_first(cases)):
            found[result.case.id] = result
            done(result)
        return [found[case.id] for case in cases]

    async def _each(self, cases: Sequence[Case]) -> AsyncIterator[Result]:
        if self.concurrency <= 1 or self.behind is not None:
            for case in cases:
                yield await self.case(case)
            return
        probes = [case for case in cases if case.probe]
        for case in probes:
            yield await self.case(case)
        gate = asyncio.Semaphore(self.concurrency)

        async def one(case: Case) -> Result:
            async with gate:
                return await self.case(case)

        tasks = [asyncio.ensure_future(one(case)) for case in cases if not case.probe]
        for task in asyncio.as_completed(tasks):
            yield await task

    async def case(self, case: Case) -> Result:
        """Run one case, or say why it is left out."""
        reason = skipped(case, self.target) or self._stopped(case)
        if reason:
            return Result(case, "skip", reason)
        started = time.monotonic()
        result = await self._tried(case)
        for attempt in range(2, ATTEMPTS + 1):
            if result.verdict != "inconclusive":
                break
            result = replace(await self._tried(case), attempts=attempt)
        self._learn(case, result)
        if case.probe and case.protocol in self.unserved:
            result = Result(case, "skip", self.unserved[case.protocol], result.steps)
        return replace(result, seconds=time.monotonic() - started)

    def _stopped(self, case: Case) -> str:
        if self.refused:
            return self.refused
        if case.protocol in self.unserved:
            return self.unserved[case.protocol]
        if self.budget is not None and self.tokens + case.max_tokens > self.budget:
            return f"the budget of {self.budget} tokens does not reach for {case.max_tokens} more"
        return ""

    async def _tried(self, case: Case) -> Result:
        steps: list[StepResult] = []
        saved: dict[str, Any] = {}
        for number, step in enumerate(case.steps):
            try:
                told, more = await self._step(step, case, saved)
            except Unreachable as error:
                return self._no_answer(case, steps, number, str(error))
            except Missing as error:
                return Result(case, "fail", f"step {number + 1}: {error}", (*steps, *_unreached(case, number)))
            steps.append(told)
            saved |= more
            if any(check.state == "broken" for check in told.checks):
                steps += _unreached(case, number + 1)
                break
        verdict, reason = verdict_of([check for step in steps for check in step.checks])
        return Result(case, verdict, reason, tuple(steps), tokens=case.max_tokens)

    def _no_answer(self, case: Case, steps: Sequence[StepResult], number: int, reason: str) -> Result:
        return Result(case, "error", reason, (*steps, *_unreached(case, number)))

    async def _step(self, step: Step, case: Case, saved: Mapping[str, Any]) -> tuple[StepResult, dict[str, Any]]:
        asked, body = written(step, case, self.target, saved)
        if self.behind is not None:
            await self.behind.begin(step.drive.script if step.drive else ())
        started = time.monotonic()
        answer = await self.transport.send(asked)
        exchange = Exchange(asked, answer, time.monotonic() - started)
        outcome = Outcome(
            dialect=case.dialect,
            profile=self.target.judged_by,
            protocol=step.request.get("protocol", case.protocol),
            model=self.target.model,
            key=self.target.key or "",
            request=body,
            answer=answer,
            saved=saved,
            sent=self.behind.received() if self.behind else (),
            upstream=self.behind.dialect if self.behind else None,
            upstream_profile=self.behind.profile if self.behind else "actual",
        )
        checks = _judged(step, outcome, case)
        return StepResult(checks, exchange), _saved(step, outcome)

    def _learn(self, case: Case, result: Result) -> None:
        self.tokens += result.tokens * result.attempts
        self.unreachable = self.unreachable + 1 if result.verdict == "error" else 0
        if self.unreachable >= _MOST_UNREACHABLE:
            self.refused = f"the endpoint could not be reached {self.unreachable} times: {result.reason}"
        answer = _last_answer(result)
        if answer is None or result.verdict == "pass":
            return
        if answer.status in _REFUSED and not case.upstreams and answer.status not in case.steps[-1].expect.status:
            self.refused = f"the endpoint answered {answer.status} to {case.id}: is the key right?"
        if case.probe and answer.status in _NOT_SERVED:
            self.unserved[case.protocol] = f"{case.protocol} is not served: {case.id} got {answer.status}"


def skipped(case: Case, target: Target) -> str:
    """Why this case is not for that target, empty where it is."""
    if case.dialect != target.dialect:
        return f"it is about {case.dialect}"
    if target.protocols and case.protocol not in target.protocols:
        return f"{case.protocol} was not asked for"
    if case.profiles and target.judged_by not in case.profiles:
        return f"it is about the profile {' or '.join(case.profiles)}"
    if "key" in case.needs and target.key is None:
        return "it needs a key, so that one can be wrong"
    missing = sorted(case.needs & target.without)
    if missing:
        return f"it needs {', '.join(missing)}"
    if case.upstreams and target.upstream not in case.upstreams:
        return f"it drives a proxy in front of {' or '.join(case.upstreams)}"
    return ""


def _probes_first(cases: Sequence[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: not case.probe)


def _last_answer(result: Result) -> Answer | None:
    exchanges = [step.exchange for step in result.steps if step.exchange is not None]
    return exchanges[-1].answer if exchanges else None


def _judged(step: Step, outcome: Outcome, case: Case) -> tuple[CheckResult, ...]:
    """Status first: where it is wrong, nothing else of the step can be told."""
    status = _status(step, outcome, case)
    if status.state == "broken":
        return (status, *_unreached_checks(step, case)[1:])
    found = [_found(check, CHECKS, outcome, cooperation=True) for check in step.expect.cooperation]
    found += [_schema(step, outcome, case)] if step.expect.schema else []
    found += [_found(check, CHECKS, outcome) for check in step.expect.checks]
    if step.drive is not None:
        found += [_found(check, SENT, outcome, "sent.") for check in step.drive.sent]
    return (status, *found)


def _status(step: Step, outcome: Outcome, case: Case) -> CheckResult:
    allowed, got = step.expect.status, outcome.answer.status
    problems = () if got in allowed else (f"{got}, expected {' or '.join(map(str, allowed))}: {outcome.text[:200]}",)
    return CheckResult("status", case.level, "broken" if problems else "held", problems)


def _schema(step: Step, outcome: Outcome, case: Case) -> CheckResult:
    name = f"{outcome.dialect}/{outcome.protocol}.{step.expect.schema}"
    if not has_schema(name):
        problems = [f"there is no schema {name}"]
    elif step.expect.schema == "event":
        problems = _events(name, outcome)
    else:
        problems = ["no JSON"] if outcome.body is ABSENT else violations(name, outcome.profile, outcome.body)
    return CheckResult(f"schema {step.expect.schema}", case.level, "broken" if problems else "held", tuple(problems))


def _events(name: str, outcome: Outcome) -> list[str]:
    problems = [] if outcome.objects else ["no events"]
    for place, body in enumerate(outcome.objects):
        problems += [f"event {place}: {problem}" for problem in violations(name, outcome.profile, body)]
    return problems[:5]


def _found(
    check: Check, known: Mapping[str, Rule], outcome: Outcome, prefix: str = "", *, cooperation: bool = False
) -> CheckResult:
    given = filled(check.arg, {"model": outcome.model, "saved": outcome.saved, "key": outcome.key})
    problems = tuple(known[check.name].find(outcome, given))
    return CheckResult(
        prefix + check.name, check.level, "broken" if problems else "held", problems, cooperation=cooperation
    )


def _unreached(case: Case, first: int) -> list[StepResult]:
    return [StepResult(tuple(_unreached_checks(step, case))) for step in case.steps[first:]]


def _unreached_checks(step: Step, case: Case) -> list[CheckResult]:
    names = [CheckResult("status", case.level, "unreached")]
    names += [CheckResult(check.name, check.level, "unreached", cooperation=True) for check in step.expect.cooperation]
    names += [CheckResult(f"schema {step.expect.schema}", case.level, "unreached")] if step.expect.schema else []
    names += [CheckResult(check.name, check.level, "unreached") for check in step.expect.checks]
    if step.drive is not None:
        names += [CheckResult(f"sent.{check.name}", check.level, "unreached") for check in step.drive.sent]
    return names


def _saved(step: Step, outcome: Outcome) -> dict[str, Any]:
    if not step.save:
        return {}
    subject = outcome.body if not outcome.is_sse else (outcome.objects[-1] if outcome.objects else ABSENT)
    found = {name: at(subject, path) for name, path in step.save.items()}
    return {name: value for name, value in found.items() if value is not ABSENT}
