"""Runs many cases, counts what came of them, and shrinks what is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from .laws import Case, Finding
from .pairs import Pair

__all__ = ["Draw", "Report", "run_cases", "shrink"]

Draw: TypeAlias = Callable[[Random, Pair], Case]
_MOST_CHECKS = 400


@dataclass
class Report:
    """What came of the cases. `findings` maps (law, place) to the seed, the smallest case and its finding."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], tuple[str, Case, Finding]] = field(default_factory=dict)
    times: Counter[tuple[str, str]] = field(default_factory=Counter)


def run_cases(draw: Draw, pairs: Sequence[Pair], seed: str, numbers: range, *, shrinks: bool = True) -> Report:
    """Check the cases with these numbers, which take the pairs in turn. Case N of a seed is the same in any run."""
    report = Report()
    for number in numbers:
        case = draw(Random(f"{seed}/{number}"), pairs[number % len(pairs)])
        outcome, found = case.run()
        report.cases += 1
        report.outcomes[outcome] += 1
        for finding in found:
            key = (finding.law, finding.place)
            report.times[key] += 1
            if key not in report.findings:
                small, smallest = shrink(case, finding) if shrinks else (case, finding)
                report.findings[key] = (f"--seed {seed} --first {number}", small, smallest)
    return report


def shrink(case: Case, finding: Finding) -> tuple[Case, Finding]:
    """The smallest case with the same finding that a greedy search reaches."""
    checks = 0
    progress = True
    while progress:
        progress = False
        for smaller in case.simplify():
            checks += 1
            if checks > _MOST_CHECKS:
                return case, finding
            again = next((one for one in smaller.check() if one[:2] == finding[:2]), None)
            if again is not None:
                case, finding, progress = smaller, again, True
                break
    return case, finding
