"""One run as the command line asks for it: it runs cases, writes reports, and returns the exit status."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .causes import group_by_cause
from .exchange import Transport
from .json_types import JsonObject
from .known_gaps import GapComparison, InvalidGapsError, compare_with_gaps, find_regressions, read_known_gaps
from .masks import Mask
from .model import LEVELS, Case, Level
from .pacing import Pacer
from .progress import Progress
from .recordings import RecordingTransport, ReplayTransport
from .reports.json_report import InvalidReportError, build_report, read_report
from .reports.output import FORMATS, OutputError, check_outputs, write_reports
from .response_cache import CaseCost, RequestKey, list_unsent_requests
from .runner import CaseRunner, DrivenUpstream, find_skip_reason, sort_cases
from .target import Target
from .transport import HttpTransport
from .verdicts import CaseResult

__all__ = ["ReportFiles", "Session", "SessionError", "select_cases"]

OK, FAILURES, UNREACHABLE = 0, 1, 3
_MOST_CAUSES = 8


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

    @property
    def outputs(self) -> Mapping[str, Path]:
        """The files to write, by format."""
        files = {name: getattr(self, name) for name in FORMATS}
        return {name: file for name, file in files.items() if file is not None}


@dataclass(frozen=True, slots=True)
class Session:
    """One run of cases against a target. `timeout` is that of one reply, `delay` the time between requests, `max_wait`
    how long one request waits for a busy server, all in seconds. `record` and `replay` are folders of recordings."""

    target: Target
    cases: Sequence[Case]
    name: str = ""
    upstream_port: int = 9100
    concurrency: int = 1
    timeout: float = 60.0
    delay: float = 0.0
    max_wait: float = 60.0
    budget: int | None = None
    verify_tls: bool = True
    record: Path | None = None
    replay: Path | None = None

    def run(self, files: ReportFiles) -> int:
        """Run the cases, write the reports, and return the exit status. If the run is interrupted, the reports have the
        results so far. Raises SessionError."""
        try:
            gaps = read_known_gaps(files.expect) if files.expect else {}
            old = read_report(files.diff) if files.diff else None
            check_outputs(files.outputs)
            self._make_record_folder()
        except (InvalidGapsError, InvalidReportError, OutputError) as error:
            raise SessionError(str(error)) from None
        results: dict[str, CaseResult] = {}
        started = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            with _interrupt_at_sigterm():
                asyncio.run(self.run_cases(results))
        except BaseException:
            if results:
                self._write(files, self._build_report(results, started), gaps)
            raise
        report = self._build_report(results, started)
        comparison = self._write(files, report, gaps)
        return _decide_status(report, comparison, find_regressions(old, report) if old else None)

    def _make_record_folder(self) -> None:
        """Raises OutputError."""
        try:
            if self.record is not None:
                self.record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"--record {self.record}: {error.strerror or error}") from None

    def _write(self, files: ReportFiles, report: JsonObject, gaps: Mapping[str, str]) -> GapComparison:
        """Write the reports. Raises SessionError if one cannot be written; the others are."""
        comparison = compare_with_gaps(report, gaps)
        for case in report["cases"]:
            if case["id"] in comparison.gaps:
                case["expected"] = comparison.gaps[case["id"]]
        try:
            write_reports(files.outputs, report)
        except OutputError as error:
            raise SessionError(str(error)) from None
        return comparison

    def forecast_costs(self) -> Iterator[CaseCost]:
        """Yield what each case that will run adds to the cost of the cases before it."""
        known: set[RequestKey | None] = set()
        for case in sort_cases(self.cases):
            if not find_skip_reason(case, self.target):
                keys = list_unsent_requests(case, self.target, known if self.target.upstream is None else ())
                known.update(keys)
                yield CaseCost(case, len(keys), case.max_tokens if keys else 0)

    async def run_cases(self, results: dict[str, CaseResult]) -> None:
        """Run the cases and add each result to `results` as soon as it is known. Raises SessionError if the port of the
        fake provider is taken."""
        cases = self._list_cases()
        async with AsyncExitStack() as stack:
            transport = self._open_transport()
            stack.push_async_callback(transport.close)
            upstream = await self._start_upstream(stack)
            runner = CaseRunner(self.target, transport, upstream, self.budget, self.concurrency, self._build_pacer())
            with Progress(len(cases)) as progress:

                def keep(result: CaseResult) -> None:
                    results[result.case.id] = result
                    progress.show_result(result)

                await runner.run_cases(cases, keep)
        tokens = sum(result.tokens for result in results.values())
        written = "" if self.target.upstream else f", at most {tokens} tokens written by the model"
        waited = f"; {runner.pacer.waited:.0f} s of waiting for a busy server" if runner.pacer.waited else ""
        _print_note(f"{runner.requests} requests{written}{waited}")

    def _list_cases(self) -> list[Case]:
        return [case for case in self.cases if case.dialect == self.target.dialect]

    def _build_report(self, results: Mapping[str, CaseResult], started: str) -> JsonObject:
        """Build the report; a case without a result is skipped."""
        left = "the run was interrupted"
        complete = [results.get(case.id) or CaseResult(case, "skip", left) for case in self._list_cases()]
        mask = Mask([self.target.key])
        return build_report(self.target, complete, mask, name=self.name, suite=_suite_version(), started=started)

    def _build_pacer(self) -> Pacer:
        """Recordings need no pauses."""
        if self.replay is not None:
            return Pacer(0.0, self.max_wait, sleep=_skip_pause)
        return Pacer(self.delay, self.max_wait)

    async def _start_upstream(self, stack: AsyncExitStack) -> DrivenUpstream | None:
        if self.target.upstream is None or self.replay is not None:
            return None
        from .fake_upstream import FakeUpstream  # it brings a server

        try:
            return await stack.enter_async_context(FakeUpstream(self.target.upstream, self.upstream_port))
        except OSError as error:
            raise SessionError(f"the fake provider cannot listen on port {self.upstream_port}: {error}") from None

    def _open_transport(self) -> Transport:
        if self.replay is not None:
            return ReplayTransport(self.replay)
        http = HttpTransport(self.timeout, verify_tls=self.verify_tls)
        return http if self.record is None else RecordingTransport(http, self.record, Mask([self.target.key]))


def select_cases(cases: Sequence[Case], only: Sequence[str], level: Level, exclude: Sequence[str] = ()) -> list[Case]:
    """Select the cases of that level or a higher one whose id matches a pattern of `only`, if there is one, and none of
    `exclude`."""
    levels = LEVELS[: LEVELS.index(level) + 1]
    matching = [case for case in cases if not only or _matches_any(case, only)]
    return [case for case in matching if case.level in levels and not _matches_any(case, exclude)]


def _matches_any(case: Case, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(case.id, pattern) for pattern in patterns)


async def _skip_pause(_seconds: float) -> None:
    pass


def _suite_version() -> str:
    try:
        return f"dragoman {version('dragoman')}"
    except PackageNotFoundError:
        return "dragoman"


@contextmanager
def _interrupt_at_sigterm() -> Iterator[None]:
    """Let SIGTERM, which a job that takes too long gets, do what Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _decide_status(report: JsonObject, comparison: GapComparison, regressions: list[str] | None) -> int:
    """Return 3 if no case got a response, 1 for failures, else 0. Known gaps are no failures; with an older report only
    regressions are."""
    _print_causes(report)
    for id_ in comparison.surprises:
        _print_note(f"{id_} passes although it is expected to fail: remove its line from the file of known gaps")
    for pattern in comparison.unknown:
        _print_note(f"the file of known gaps names {pattern}, which matches no case of this run")
    counts = report["counts"]
    if counts["error"] + counts["skip"] and not counts["pass"] + counts["warn"] + counts["fail"]:
        return UNREACHABLE
    if regressions is None:
        return FAILURES if comparison.unexpected else OK
    for id_ in regressions:
        _print_note(f"regression: {id_}")
    return FAILURES if regressions else OK


def _print_causes(report: JsonObject) -> None:
    """Print the causes that several failures share."""
    shared = [group for group in group_by_cause(report["cases"]) if len(group["cases"]) > 1]
    for group in shared[:_MOST_CAUSES]:
        _print_note(f"{len(group['cases']):4} x {group['cause']}")
    if report["advice"]:
        _print_note(report["advice"])


def _print_note(text: str) -> None:
    print(text, file=sys.stderr)
