"""Running cases against a target, one result for each.

A case is tried again once where the model did not cooperate. The first 401 or 403 ends the run, as every other case
would get the same; not one that the fake behind a proxy was told to give. A case with `probe` that finds nothing at its
protocol's address makes the other cases of the protocol skip, and skips itself. Cases run one after the other unless
more `concurrency` is asked for; a proxy that is driven through its fake is always asked by one case at a time, and each
of its answers is for one case alone. Other cases share the answers to requests that are alike (`sharing.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .dialects import dialect
from .model import Case, Step
from .outcome import Outcome, Received
from .sharing import Key, Shared, fresh, key_of
from .steps import checks_of, saved_of, unreached
from .target import Target, written
from .values import Missing
from .verdicts import Result, StepResult, Upstream, verdict_of
from .wire import LEFT, Answer, Asked, Exchange, Transport, Unreachable

__all__ = ["Behind", "Run", "probes_first", "skipped"]

ATTEMPTS = 2
_REFUSED = (401, 403)
_NOT_SERVED = (404, 405, 501)
_MOST_UNREACHABLE = 2


class Behind(Protocol):
    """The fake provider behind a proxy under test."""

    dialect: str
    profile: str

    @property
    def origin(self) -> str: ...

    async def begin(self, script: Sequence[str]) -> None:
        """Forget what was received, and behave like this from now on."""

    def received(self) -> Sequence[Received]: ...

    async def asked(self) -> None:
        """Wait until there is a request, though not for ever."""

    async def left(self) -> bool:
        """Whether all who asked leave before the end, which may take them some seconds."""


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

    def __post_init__(self) -> None:
        self._shared = Shared(self.transport)

    @property
    def requests(self) -> int:
        """How many were sent."""
        return self._shared.requests

    async def results(self, cases: Sequence[Case], done: Callable[[Result], object] = lambda _: None) -> list[Result]:
        """The results, in the order of the cases; `done` gets each as soon as it is there."""
        found = {}
        async for result in self._each(probes_first(cases)):
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
        alone = self.behind is not None
        tokens = case.max_tokens if alone else self._due(case)
        result = replace(await self._tried(case, alone=alone), tokens=tokens)
        for attempt in range(2, ATTEMPTS + 1):
            if result.verdict != "inconclusive":
                break
            result = replace(await self._tried(case, alone=True), attempts=attempt, tokens=tokens + case.max_tokens)
        self._learn(case, result)
        if case.probe and case.protocol in self.unserved:
            result = Result(case, "skip", self.unserved[case.protocol], result.steps)
        return replace(result, seconds=time.monotonic() - started)

    def _stopped(self, case: Case) -> str:
        if self.refused:
            return self.refused
        if case.protocol in self.unserved:
            return self.unserved[case.protocol]
        if self.budget is not None and self.tokens + self._due(case) > self.budget:
            return f"the budget of {self.budget} tokens does not reach for {self._due(case)} more"
        return ""

    def _due(self, case: Case) -> int:
        """The most tokens that the model writes for this case now."""
        return case.max_tokens if fresh(case, self.target, self._shared.known) else 0

    async def _tried(self, case: Case, *, alone: bool) -> Result:
        steps: list[StepResult] = []
        saved: dict[str, Any] = {}
        seen: set[Key] | None = None if alone else set()
        for number, step in enumerate(case.steps):
            try:
                told, more = await self._step(step, case, saved, seen)
            except Unreachable as error:
                return self._no_answer(case, steps, number, str(error))
            except Missing as error:
                return Result(case, "fail", f"step {number + 1}: {error}", (*steps, *unreached(case, number)))
            steps.append(told)
            saved |= more
            if any(check.state == "broken" for check in told.checks):
                steps += unreached(case, number + 1)
                break
        verdict, reason = verdict_of([check for step in steps for check in step.checks])
        return Result(case, verdict, reason, tuple(steps))

    def _no_answer(self, case: Case, steps: Sequence[StepResult], number: int, reason: str) -> Result:
        return Result(case, "error", reason, (*steps, *unreached(case, number)))

    async def _step(
        self, step: Step, case: Case, saved: Mapping[str, Any], seen: set[Key] | None
    ) -> tuple[StepResult, dict[str, Any]]:
        """`seen` are the requests that the case has sent already; None where no answer is to be shared."""
        asked, body = written(step, case, self.target, saved)
        script = step.drive.script if step.drive else ()
        if self.behind is not None:
            await self.behind.begin(script)
        started = time.monotonic()
        answer = await (self._left(asked, self.behind) if asked.leave and self.behind else self._answer(asked, seen))
        exchange = Exchange(asked, answer, time.monotonic() - started)
        upstream = self._upstream(script)
        outcome = Outcome(
            dialect=case.dialect,
            profile=self.target.judged_by,
            protocol=step.request.get("protocol", case.protocol),
            model=self.target.model,
            key=self.target.key or "",
            request=body,
            answer=answer,
            saved=saved,
            sent=upstream.received if upstream else (),
            upstream=self.behind.dialect if self.behind else None,
            upstream_profile=self.behind.profile if self.behind else "actual",
            let_go=bool(asked.leave and self.behind and await self.behind.left()),
        )
        checks = checks_of(step, outcome, case)
        return StepResult(checks, exchange, upstream), saved_of(step, outcome)

    async def _answer(self, asked: Asked, seen: set[Key] | None) -> Answer:
        if seen is None or key_of(asked) in seen:
            return await self._shared.send(asked)
        seen.add(key_of(asked))
        return await self._shared.get(asked)

    async def _left(self, asked: Asked, behind: Behind) -> Answer:
        """What a client has got that leaves. Raises Unreachable where it could not even ask."""
        if asked.leave == "begun":
            return await self._shared.send(replace(asked, until=behind.asked))
        sending = asyncio.ensure_future(self._shared.send(asked))
        waiting = asyncio.ensure_future(behind.asked())
        await asyncio.wait((sending, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if sending.done():
            return sending.result()
        sending.cancel()
        await asyncio.wait((sending,))
        return Answer(LEFT, (), (), "the client left")

    def _upstream(self, script: tuple[str, ...]) -> Upstream | None:
        if self.behind is None:
            return None
        return Upstream(self.behind.dialect, self.behind.origin, script, tuple(self.behind.received()))

    def _learn(self, case: Case, result: Result) -> None:
        self.tokens += result.tokens
        self.unreachable = self.unreachable + 1 if result.verdict == "error" else 0
        if self.unreachable >= _MOST_UNREACHABLE:
            self.refused = f"the endpoint could not be reached {self.unreachable} times: {result.reason}"
        answer = _last_answer(result)
        if answer is None or result.verdict == "pass":
            return
        if answer.status in _REFUSED and not case.upstreams and answer.status not in case.steps[-1].expect.status:
            self.refused = f"the endpoint answered {answer.status} to {case.id}: is the key right?"
        if case.probe and answer.status in _NOT_SERVED:
            root = dialect(case.dialect).root
            bare = root not in self.target.base_url
            hint = f"; the base URL of an endpoint of {case.dialect} ends with {root} as a rule" if bare else ""
            self.unserved[case.protocol] = f"{case.protocol} is not served: {case.id} got {answer.status}{hint}"


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
    if case.upstreams and target.upstream is None:
        return "it drives a proxy, which --upstream asks for"
    if case.upstreams and target.upstream not in case.upstreams:
        return f"it is about a proxy in front of {' or '.join(case.upstreams)}"
    return ""


def probes_first(cases: Sequence[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: not case.probe)


def _last_answer(result: Result) -> Answer | None:
    exchanges = [step.exchange for step in result.steps if step.exchange is not None]
    return exchanges[-1].answer if exchanges else None
