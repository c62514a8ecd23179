"""One run as the command line asks for it: it runs cases, writes reports, and returns the exit status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .exchange import Transport
from .fake_upstream import FakeUpstream
from .json_types import JsonObject
from .known_gaps import GapComparison, InvalidGapsError, compare_with_gaps, find_regressions, read_known_gaps
from .masks import Mask
from .model import LEVELS, Case, Level
from .progress import Progress
from .recordings import RecordingTransport, ReplayTransport
from .reports.badge import render_badge
from .reports.html import render_page
from .reports.json_report import InvalidReportError, build_report, read_report, serialize_report
from .reports.junit import render_junit
from .reports.markdown import render_markdown
from .response_cache import CaseCost, RequestKey, list_unsent_requests
from .runner import CaseRunner, find_skip_reason, sort_probes_first
from .target import Target
from .transport import HttpTransport

__all__ = ["ReportFiles", "Session", "SessionError", "select_cases"]

OK, FAILURES, UNREACHABLE = 0, 1, 3


class SessionError(ValueError):
    """The run cannot start: a file has the wrong form, or a port is taken."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files to write, and in `expect` (known gaps) and `diff` (an older report) the files to compare with."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    expect: Path | None = None
    diff: Path | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One run of cases against a target. `record` and `replay` are folders of recordings."""

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

    def run(self, files: ReportFiles) -> int:
        """Run the cases, write the reports, and return the exit status. Raises SessionError."""
        try:
            gaps = read_known_gaps(files.expect) if files.expect else {}
            old = read_report(files.diff) if files.diff else None
        except (InvalidGapsError, InvalidReportError) as error:
            raise SessionError(str(error)) from None
        report = asyncio.run(self.run_cases())
        comparison = compare_with_gaps(report, gaps)
        for case in report["cases"]:
            if case["id"] in comparison.gaps:
                case["expected"] = comparison.gaps[case["id"]]
        _write_reports(files, report)
        return _decide_status(report, comparison, find_regressions(old, report) if old else None)

    def forecast_costs(self) -> Iterator[CaseCost]:
        """Yield what each case that will run adds to the cost of the cases before it."""
        known: set[RequestKey | None] = set()
        for case in sort_probes_first(self.cases):
            if not find_skip_reason(case, self.target):
                keys = list_unsent_requests(case, self.target, known if self.target.upstream is None else ())
                known.update(keys)
                yield CaseCost(case, len(keys), case.max_tokens if keys else 0)

    async def run_cases(self) -> JsonObject:
        """Run the cases and return the JSON report. Raises SessionError if the port of the fake provider is taken."""
        cases = [case for case in self.cases if case.dialect == self.target.dialect]
        started = datetime.now(UTC).isoformat(timespec="seconds")
        mask = Mask([self.target.key])
        async with AsyncExitStack() as stack:
            transport = self._open_transport(mask)
            stack.push_async_callback(transport.close)
            runner = CaseRunner(
                self.target, transport, await self._start_upstream(stack), self.budget, self.concurrency
            )
            with Progress(len(cases)) as progress:
                results = await runner.run_cases(cases, progress.show_result)
        tokens = sum(result.tokens for result in results)
        written = "" if self.target.upstream else f", at most {tokens} tokens written by the model"
        _print_note(f"{runner.requests} requests{written}")
        return build_report(self.target, results, mask, name=self.name, suite=_suite_version(), started=started)

    async def _start_upstream(self, stack: AsyncExitStack) -> FakeUpstream | None:
        if self.target.upstream is None or self.replay is not None:
            return None
        try:
            return await stack.enter_async_context(FakeUpstream(self.target.upstream, self.upstream_port))
        except OSError as error:
            raise SessionError(f"the fake provider cannot listen on port {self.upstream_port}: {error}") from None

    def _open_transport(self, mask: Mask) -> Transport:
        if self.replay is not None:
            return ReplayTransport(self.replay)
        http = HttpTransport(self.timeout, verify_tls=self.verify_tls)
        return http if self.record is None else RecordingTransport(http, self.record, mask)


def select_cases(cases: Sequence[Case], only: Sequence[str], level: Level) -> list[Case]:
    """Select the cases of that level or a higher one whose id matches one of the patterns; no pattern matches all."""
    levels = LEVELS[: LEVELS.index(level) + 1]
    matching = [case for case in cases if not only or any(fnmatchcase(case.id, pattern) for pattern in only)]
    return [case for case in matching if case.level in levels]


def _suite_version() -> str:
    try:
        return f"dragoman {version('dragoman')}"
    except PackageNotFoundError:
        return "dragoman"


def _write_reports(files: ReportFiles, report: JsonObject) -> None:
    renderers: tuple[tuple[Path | None, Callable[[JsonObject], str]], ...] = (
        (files.json, serialize_report),
        (files.junit, render_junit),
        (files.markdown, render_markdown),
        (files.html, lambda one: render_page([one])),
        (files.badge, render_badge),
    )
    for file, render in renderers:
        if file == Path("-"):
            print(render(report), end="")
        elif file is not None:
            file.write_text(render(report), "utf-8")


def _decide_status(report: JsonObject, comparison: GapComparison, regressions: list[str] | None) -> int:
    """Return 3 if no case got a response, 1 for failures, else 0. Known gaps are no failures; with an older report only
    regressions are."""
    for id_ in comparison.surprises:
        _print_note(f"{id_} passes although it is expected to fail: remove it from the file of known gaps")
    for pattern in comparison.unknown:
        _print_note(f"the file of known gaps names {pattern}, which matches no case of this run")
    counts = report["counts"]
    if counts["error"] + counts["skip"] and not counts["pass"] + counts["warn"] + counts["fail"]:
        return UNREACHABLE
    if regressions is None:
        return FAILURES if comparison.unexpected or comparison.surprises else OK
    for id_ in regressions:
        _print_note(f"regression: {id_}")
    return FAILURES if regressions else OK


def _print_note(text: str) -> None:
    print(text, file=sys.stderr)
