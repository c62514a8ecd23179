"""The results of one step: its checks, in the order in which reports list them, and the values that it saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .checks import REPLY_CHECKS, UPSTREAM_CHECKS, Rule
from .checks.bodies import describe_body, find_schema_problems
from .checks.rule import shorten
from .json_path import ABSENT, find_value
from .json_types import JsonValue
from .lacks import find_lacking_capability
from .model import Case, Check, Step
from .outcome import Outcome
from .placeholders import fill_placeholders
from .schema_validation import find_violations, has_schema
from .verdicts import CheckResult, StepResult

__all__ = ["list_unreached_steps", "read_saved_values", "run_checks"]

_MOST_SHOWN = 5
_UNASKED_STREAM: Mapping[str, Any] = {
    "state": "broken",
    "problems": (
        "the reply is an event stream that the request did not ask for, which the protocol's first case judges",
    ),
    "cooperation": True,
}


def run_checks(step: Step, outcome: Outcome, case: Case) -> tuple[CheckResult, ...]:
    """Run the checks of a step. If the status is wrong, or the reply is a stream that only the probe of the protocol
    judges, the other checks are unreached."""
    status = _check_status(step, outcome, case)
    if status.state == "broken" or _is_judged_by_probe(step, outcome, case):
        first = status if status.state == "broken" else replace(status, **_UNASKED_STREAM)
        return (first, *_list_unreached_checks(step, case)[1:])
    found = [_run_check(check, REPLY_CHECKS, outcome, cooperation=True) for check in step.expect.cooperation]
    found += [_check_schema(step.expect.schema, outcome, case)] if step.expect.schema else ()
    found += [_run_check(check, REPLY_CHECKS, outcome) for check in step.expect.checks]
    if step.upstream is not None:
        found += [_run_check(check, UPSTREAM_CHECKS, outcome, "sent.") for check in step.upstream.sent]
    return (status, *found)


def _check_status(step: Step, outcome: Outcome, case: Case) -> CheckResult:
    allowed, got = step.expect.status, outcome.response.status
    if got in allowed:
        return CheckResult("status", case.level, "held")
    address = outcome.response.header("location") if 300 <= got < 400 else None
    redirect = f" (a redirect to {shorten(address, 200)}, which is not followed)" if address else ""
    problem = f"{got}, expected {' or '.join(map(str, allowed))}{redirect}: {outcome.text[:200]}"
    lacking = find_lacking_capability(case, outcome)
    excuse = (f"the model lacks {lacking} (--without {lacking})",) if lacking else ()
    return CheckResult("status", case.level, "broken", (*excuse, problem), cooperation=bool(lacking))


def _is_judged_by_probe(step: Step, outcome: Outcome, case: Case) -> bool:
    """Whether the reply is an event stream although the request asks for none. A server that streams by default would
    fail every case of the protocol; its probe alone says so."""
    asked = step.request.get("raw") is not None or "stream" in outcome.request
    driven = outcome.upstream is not None
    return outcome.is_sse and not (asked or driven or case.probe) and outcome.response.status < 400


def _check_schema(side: str, outcome: Outcome, case: Case) -> CheckResult:
    """Check the schema. Whether a key is null or missing is a matter of the cases with the check `complete`."""
    name = f"{outcome.dialect}/{outcome.protocol}.{side}"
    if not has_schema(name):
        problems = [f"there is no schema {name}"]
    elif side == "event":
        problems = _validate_events(name, outcome)
    else:
        problems = [*_find_error(side, outcome), *find_schema_problems(name, outcome)]
    return CheckResult(f"schema {side}", case.level, "broken" if problems else "held", tuple(problems))


def _find_error(side: str, outcome: Outcome) -> list[str]:
    """Say that a reply is an error although its status is one of success; several APIs have `error` in a reply, too."""
    body = outcome.body
    if side == "error" or not isinstance(body, dict) or not body.get("error") or "object" in body:
        return []
    return [f"the body is an error, and the status is {outcome.response.status}: {shorten(outcome.text, 120)}"]


def _validate_events(name: str, outcome: Outcome) -> list[str]:
    if not outcome.is_sse:
        if not outcome.objects:
            return [describe_body(outcome)]
        return [*_find_error("event", outcome), "the reply is one JSON body, expected an event stream"]
    if not outcome.objects:
        if outcome.text.count("\ndata:"):
            return [f"no blank line ends an event of the stream: {shorten(outcome.text, 120)}"]
        return [f"no event of the stream is a JSON object: {shorten(outcome.text, 120)}"]
    problems = [
        f"event {position}: {problem}"
        for position, body in enumerate(outcome.objects)
        for problem in find_violations(name, outcome.profile, body)
    ]
    return problems[:_MOST_SHOWN]


def _run_check(
    check: Check, rules: Mapping[str, Rule], outcome: Outcome, prefix: str = "", *, cooperation: bool = False
) -> CheckResult:
    rule, values = rules[check.name], {"model": outcome.model, "saved": outcome.saved, "key": outcome.key}
    arg = fill_placeholders(check.arg, values)
    problems = tuple(rule.find_problems(outcome, arg))
    result = CheckResult(prefix + check.name, check.level, "held", (), cooperation, rule.needs_model)
    if not problems:
        return result
    excuse = rule.find_excuse(outcome, arg) if rule.find_excuse and outcome.upstream is None else ""
    if excuse:
        return replace(result, state="broken", problems=(*problems, excuse), cooperation=True)
    return replace(result, state="broken", problems=problems)


def list_unreached_steps(case: Case, first: int) -> list[StepResult]:
    """List the results of the steps from that one on, when none of them ran."""
    return [StepResult(tuple(_list_unreached_checks(step, case))) for step in case.steps[first:]]


def _list_unreached_checks(step: Step, case: Case) -> list[CheckResult]:
    checks = [CheckResult("status", case.level, "unreached")]
    checks += [CheckResult(check.name, check.level, "unreached", cooperation=True) for check in step.expect.cooperation]
    checks += [CheckResult(f"schema {step.expect.schema}", case.level, "unreached")] if step.expect.schema else ()
    checks += [CheckResult(check.name, check.level, "unreached") for check in step.expect.checks]
    if step.upstream is not None:
        checks += [CheckResult(f"sent.{check.name}", check.level, "unreached") for check in step.upstream.sent]
    return checks


def read_saved_values(step: Step, outcome: Outcome) -> dict[str, JsonValue]:
    """Read the values that the step saves for later steps. A name whose path leads nowhere is left out."""
    found = {name: find_value(outcome.last_object, path) for name, path in step.save.items()}
    return {name: value for name, value in found.items() if value is not ABSENT}
