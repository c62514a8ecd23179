"""The progress display: a bar on a terminal, and a line for each case that neither passed nor was skipped."""

from __future__ import annotations

from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from .verdicts import VERDICTS, CaseResult

__all__ = ["Progress"]

_COLORS = {"pass": "green", "warn": "yellow", "fail": "red", "inconclusive": "magenta", "error": "bold red"}
_MOST_CHARACTERS = 400


class Progress:
    """Shows progress on standard error: `with Progress(150) as progress: progress.show_result(result)`."""

    def __init__(self, total: int) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._task = self._bar.add_task("", total=total)
        self._counts: Counter[str] = Counter()
        self._skip_reasons: Counter[str] = Counter()

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if kind is None:
            self._print_totals()

    def show_result(self, result: CaseResult) -> None:
        self._counts[result.verdict] += 1
        self._bar.update(self._task, advance=1, description=escape(result.case.id))
        if result.verdict == "skip":
            self._skip_reasons[result.reason] += 1
        elif result.verdict != "pass":
            color, reason = _COLORS[result.verdict], escape(result.reason[:_MOST_CHARACTERS])
            self._bar.console.print(f"[{color}]{result.verdict:<12}[/] {escape(result.case.id)}: {reason}")

    def _print_totals(self) -> None:
        for reason, number in self._skip_reasons.items():
            self._console.print(f"[dim]skip         {number} cases: {escape(reason)}[/]")
        counts = [f"{self._counts[verdict]} {verdict}" for verdict in VERDICTS if self._counts[verdict]]
        self._console.print(f"{sum(self._counts.values())} cases: {', '.join(counts) or 'none'}")
