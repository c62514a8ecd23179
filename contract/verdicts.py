"""The results of cases, steps and checks.

A case has a fixed number of checks: unreached checks are listed too, so that two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .exchange import Exchange
from .model import Case, Level
from .outcome import Outcome, UpstreamRequest

__all__ = [
    "VERDICTS",
    "CaseResult",
    "CheckResult",
    "CheckState",
    "StepResult",
    "UpstreamLog",
    "Verdict",
    "decide_verdict",
]

Verdict: TypeAlias = Literal["pass", "warn", "fail", "inconclusive", "skip", "error"]
CheckState: TypeAlias = Literal["held", "broken", "unreached"]

VERDICTS: tuple[Verdict, ...] = ("pass", "warn", "fail", "inconclusive", "skip", "error")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. If `cooperation` is True, a broken check says that the model did not do its part. If
    `needs_model` is True, the check says nothing in that case."""

    name: str
    level: Level
    state: CheckState
    problems: tuple[str, ...] = ()
    cooperation: bool = False
    needs_model: bool = False


@dataclass(frozen=True, slots=True)
class UpstreamLog:
    """The fake provider behind a proxy during a step: its dialect, origin and script, and the requests it received."""

    dialect: str
    origin: str
    script: tuple[str, ...]
    received: tuple[UpstreamRequest, ...]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The results of the checks of one step, with its exchange and outcome if there is one."""

    checks: tuple[CheckResult, ...]
    exchange: Exchange | None = None
    upstream: UpstreamLog | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case. `reason` is a sentence, empty if every check held; `tokens` is the most that the model
    can have written for the case, in all attempts together."""

    case: Case
    verdict: Verdict
    reason: str = ""
    steps: tuple[StepResult, ...] = ()
    seconds: float = 0.0
    attempts: int = 1
    tokens: int = 0

    @property
    def checks(self) -> list[CheckResult]:
        return [check for step in self.steps for check in step.checks]


_VERDICT_LEVELS: Mapping[Verdict, tuple[Level, ...]] = {"fail": ("MUST",), "warn": ("SHOULD", "MAY")}


def decide_verdict(checks: Sequence[CheckResult]) -> tuple[Verdict, str]:
    """Return the verdict and its reason, that of the worst broken check.

    If the model did not do its part, the case is inconclusive, unless a MUST is broken that does not need the model.
    """
    broken = [check for check in checks if check.state == "broken"]
    refusal = next((check for check in broken if check.cooperation), None)
    if refusal is not None:
        broken = [check for check in broken if not (check.cooperation or check.needs_model)]
    verdict, worst = _find_worst(broken)
    if refusal is not None and verdict != "fail":
        return "inconclusive", _describe(refusal)
    return verdict, _describe(worst) if worst else ""


def _find_worst(broken: Sequence[CheckResult]) -> tuple[Verdict, CheckResult | None]:
    for verdict, levels in _VERDICT_LEVELS.items():
        found = next((check for check in broken if check.level in levels), None)
        if found is not None:
            return verdict, found
    return "pass", None


def _describe(check: CheckResult) -> str:
    return f"{check.name}: {'; '.join(check.problems)}"
