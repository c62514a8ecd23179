"""What becomes of one step of a case: each of its checks, in the order that they are read in, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .checks import CHECKS, SENT, Rule
from .judge import Findings, has_schema, judged
from .model import Case, Check, Level, Step
from .outcome import Outcome
from .paths import ABSENT, at
from .values import filled
from .verdicts import CheckResult, StepResult

__all__ = ["checks_of", "saved_of", "unreached"]

_SHOWN = 5


def checks_of(step: Step, outcome: Outcome, case: Case) -> tuple[CheckResult, ...]:
    """Status first: where it is wrong, nothing else of the step can be told."""
    status = _status(step, outcome, case)
    if status.state == "broken":
        return (status, *_checks_of_none(step, case)[1:])
    found = [_found(check, CHECKS, outcome, cooperation=True) for check in step.expect.cooperation]
    found += _schema(step.expect.schema, outcome, case) if step.expect.schema else ()
    found += [_found(check, CHECKS, outcome) for check in step.expect.checks]
    if step.drive is not None:
        found += [_found(check, SENT, outcome, "sent.") for check in step.drive.sent]
    return (status, *found)


def _status(step: Step, outcome: Outcome, case: Case) -> CheckResult:
    allowed, got = step.expect.status, outcome.answer.status
    problems = () if got in allowed else (f"{got}, expected {' or '.join(map(str, allowed))}: {outcome.text[:200]}",)
    return CheckResult("status", case.level, "broken" if problems else "held", problems)


def _schema(side: str, outcome: Outcome, case: Case) -> tuple[CheckResult, CheckResult]:
    """What breaks the schema, and, as something that is only recommended, which keys are left out rather than null."""
    name = f"{outcome.dialect}/{outcome.protocol}.{side}"
    if not has_schema(name):
        found = Findings([f"there is no schema {name}"], [])
    elif side == "event":
        found = _events(name, outcome)
    else:
        found = Findings(["no JSON"], []) if outcome.body is ABSENT else judged(name, outcome.profile, outcome.body)
    told = zip(_schema_checks(side, case), (found.violations, found.unsaid), strict=True)
    broken, unsaid = (replace(check, state="broken" if said else "held", problems=tuple(said)) for check, said in told)
    return broken, unsaid


def _schema_checks(side: str, case: Case) -> tuple[CheckResult, CheckResult]:
    level: Level = "SHOULD" if case.level == "MUST" else case.level
    return (
        CheckResult(f"schema {side}", case.level, "unreached"),
        CheckResult(f"schema {side}, keys that may be null", level, "unreached"),
    )


def _events(name: str, outcome: Outcome) -> Findings:
    all_of = Findings([] if outcome.objects else ["no events"], [])
    for place, body in enumerate(outcome.objects):
        found = judged(name, outcome.profile, body)
        all_of.violations.extend(f"event {place}: {problem}" for problem in found.violations)
        all_of.unsaid.extend(f"event {place}: {problem}" for problem in found.unsaid)
    return Findings(all_of.violations[:_SHOWN], all_of.unsaid[:_SHOWN])


def _found(
    check: Check, known: Mapping[str, Rule], outcome: Outcome, prefix: str = "", *, cooperation: bool = False
) -> CheckResult:
    given = filled(check.arg, {"model": outcome.model, "saved": outcome.saved, "key": outcome.key})
    problems = tuple(known[check.name].find(outcome, given))
    return CheckResult(
        prefix + check.name, check.level, "broken" if problems else "held", problems, cooperation=cooperation
    )


def unreached(case: Case, first: int) -> list[StepResult]:
    """The steps of the case from that one on, none of which was taken."""
    return [StepResult(tuple(_checks_of_none(step, case))) for step in case.steps[first:]]


def _checks_of_none(step: Step, case: Case) -> list[CheckResult]:
    names = [CheckResult("status", case.level, "unreached")]
    names += [CheckResult(check.name, check.level, "unreached", cooperation=True) for check in step.expect.cooperation]
    names += _schema_checks(step.expect.schema, case) if step.expect.schema else ()
    names += [CheckResult(check.name, check.level, "unreached") for check in step.expect.checks]
    if step.drive is not None:
        names += [CheckResult(f"sent.{check.name}", check.level, "unreached") for check in step.drive.sent]
    return names


def saved_of(step: Step, outcome: Outcome) -> dict[str, Any]:
    """What the step keeps of the reply for later ones; a name whose path leads nowhere is left out."""
    if not step.save:
        return {}
    subject = outcome.body if not outcome.is_sse else (outcome.objects[-1] if outcome.objects else ABSENT)
    found = {name: at(subject, path) for name, path in step.save.items()}
    return {name: value for name, value in found.items() if value is not ABSENT}
