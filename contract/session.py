"""A run from beginning to end, as the command line and others ask for it: cases in, reports out, and a status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .behind import Fake
from .expectations import Judgement, NotExpectations, judged, read_expectations, regressions
from .masks import Mask
from .model import LEVELS, Case, Json, Level
from .progress import Progress
from .recordings import Recorder, Replayer
from .reports.badge import badge
from .reports.document import NotAReport, document, dumped, read_report
from .reports.html import page
from .reports.junit import junit
from .reports.markdown import markdown
from .runner import Run, probes_first, skipped
from .sharing import Cost, Key, fresh
from .target import Target
from .transport import Http
from .wire import Transport

__all__ = ["Outputs", "Plan", "Unusable", "chosen"]

OK, FAILURES, UNREACHABLE = 0, 1, 3


class Unusable(ValueError):
    """What was asked for cannot be done: a file that is none, a port that is taken."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to write, and files to compare with."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    expect: Path | None = None
    diff: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    target: Target
    cases: Sequence[Case]
    name: str = ""
    upstream_port: int = 9100
    concurrency: int = 1
    timeout: float = 60.0
    budget: int | None = None
    verify_tls: bool = True
    record: Path | None = None
    replay: Path | None = None

    def run(self, outputs: Outputs) -> int:
        """Run the cases, write the reports, and return the exit status. Raises Unusable."""
        try:
            expected = read_expectations(outputs.expect) if outputs.expect else {}
            old = read_report(outputs.diff) if outputs.diff else None
        except (NotExpectations, NotAReport) as error:
            raise Unusable(str(error)) from None
        report = asyncio.run(self.report())
        judgement = judged(report, expected)
        for case in report["cases"]:
            if case["id"] in judgement.gaps:
                case["expected"] = judgement.gaps[case["id"]]
        _write(outputs, report)
        return _status(report, judgement, regressions(old, report) if old else None)

    def forecast(self) -> Iterator[Cost]:
        """What each case that will be asked adds to the cost of those before it."""
        known: set[Key | None] = set()
        for case in probes_first(self.cases):
            if not skipped(case, self.target):
                keys = fresh(case, self.target, known if self.target.upstream is None else ())
                known.update(keys)
                yield Cost(case, len(keys), case.max_tokens if keys else 0)

    async def report(self) -> Json:
        """The JSON report of a run. Raises Unusable where the fake's port is taken."""
        mine = [case for case in self.cases if case.dialect == self.target.dialect]
        started = datetime.now(UTC).isoformat(timespec="seconds")
        mask = Mask([self.target.key])
        async with AsyncExitStack() as stack:
            transport = self._transport(mask)
            stack.push_async_callback(transport.close)
            run = Run(self.target, transport, await self._fake(stack), self.budget, self.concurrency)
            with Progress(len(mine)) as progress:
                results = await run.results(mine, progress.done)
        tokens = sum(result.tokens for result in results)
        written = "" if self.target.upstream else f", at most {tokens} tokens written by the model"
        _say(f"{run.requests} requests{written}")
        return document(self.target, results, mask, name=self.name, suite=_suite(), started=started)

    async def _fake(self, stack: AsyncExitStack) -> Fake | None:
        if self.target.upstream is None or self.replay is not None:
            return None
        try:
            return await stack.enter_async_context(Fake(self.target.upstream, self.upstream_port))
        except OSError as error:
            raise Unusable(f"the fake provider cannot listen on port {self.upstream_port}: {error}") from None

    def _transport(self, mask: Mask) -> Transport:
        if self.replay is not None:
            return Replayer(self.replay)
        http = Http(self.timeout, verify_tls=self.verify_tls)
        return http if self.record is None else Recorder(http, self.record, mask)


def chosen(cases: Sequence[Case], only: Sequence[str], level: Level) -> list[Case]:
    """The cases whose id fits one of the patterns, if there are any, and that matter at least that much."""
    levels = LEVELS[: LEVELS.index(level) + 1]
    fitting = [case for case in cases if not only or any(fnmatchcase(case.id, pattern) for pattern in only)]
    return [case for case in fitting if case.level in levels]


def _suite() -> str:
    try:
        return f"dragoman {version('dragoman')}"
    except PackageNotFoundError:
        return "dragoman"


def _write(outputs: Outputs, report: Json) -> None:
    written = (
        (outputs.json, dumped),
        (outputs.junit, junit),
        (outputs.markdown, markdown),
        (outputs.html, lambda told: page([told])),
        (outputs.badge, badge),
    )
    for file, form in written:
        if file == Path("-"):
            print(form(report), end="")
        elif file is not None:
            file.write_text(form(report), "utf-8")


def _status(report: Json, judgement: Judgement, worse: list[str] | None) -> int:
    """3 where nothing could be asked, 1 where something fails that is no known gap, or, with an older report, that did
    not fail then; else 0."""
    for id_ in judgement.surprises:
        _say(f"{id_} passes although it is expected to fail: take it out of the expectations")
    for pattern in judgement.unknown:
        _say(f"the expectations name {pattern}, which fits no case of this run")
    counts = report["counts"]
    if counts["error"] + counts["skip"] and not counts["pass"] + counts["warn"] + counts["fail"]:
        return UNREACHABLE
    if worse is None:
        return FAILURES if judgement.unexpected or judgement.surprises else OK
    for id_ in worse:
        _say(f"regression: {id_}")
    return FAILURES if worse else OK


def _say(text: str) -> None:
    print(text, file=sys.stderr)
