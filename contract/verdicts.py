"""Verdicts: what became of a case, and of each of its checks.

A case has a fixed number of checks: those that were never reached are told too, so that numbers of two runs compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .model import Case, Level
from .outcome import Received
from .wire import Exchange

__all__ = ["VERDICTS", "CheckResult", "Result", "State", "StepResult", "Upstream", "Verdict", "verdict_of"]

Verdict: TypeAlias = Literal["pass", "warn", "fail", "inconclusive", "skip", "error"]
State: TypeAlias = Literal["held", "broken", "unreached"]

VERDICTS: tuple[Verdict, ...] = ("pass", "warn", "fail", "inconclusive", "skip", "error")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`cooperation` is true where the check asks for what only the model decides."""

    name: str
    level: Level
    state: State
    problems: tuple[str, ...] = ()
    cooperation: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """The fake behind a proxy during a step: its dialect and address, what it was told to do, what reached it."""

    dialect: str
    origin: str
    script: tuple[str, ...]
    received: tuple[Received, ...]


@dataclass(frozen=True, slots=True)
class StepResult:
    checks: tuple[CheckResult, ...]
    exchange: Exchange | None = None
    upstream: Upstream | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case. `reason` is a sentence, empty where all is well; `tokens` the most that the model can have
    written for it, all attempts together."""

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


@dataclass(frozen=True, slots=True)
class _Rank:
    verdict: Verdict
    levels: tuple[Level, ...] = field(default=())


def verdict_of(checks: Sequence[CheckResult]) -> tuple[Verdict, str]:
    """The verdict, and the sentence that says why: a model that did not cooperate, else the worst broken check."""
    broken = [check for check in checks if check.state == "broken"]
    for check in broken:
        if check.cooperation:
            return "inconclusive", _reason(check)
    for rank in _RANKS:
        for check in broken:
            if check.level in rank.levels:
                return rank.verdict, _reason(check)
    return "pass", ""


_RANKS = (_Rank("fail", ("MUST",)), _Rank("warn", ("SHOULD", "MAY")))


def _reason(check: CheckResult) -> str:
    return f"{check.name}: {'; '.join(check.problems)}"
