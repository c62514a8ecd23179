"""Which profile of a dialect an endpoint fits: its replies are validated in each, and it is asked at the bounds of
fields in which the profiles differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jsonschema import Draft202012Validator

from dragoman.contract.causes import find_cause
from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.schema_validation import find_violations, has_schema
from dragoman.contract.texts import shorten
from dragoman.schemas import load

from .asking import Asker
from .findings import Evidence, Findings
from .probe_answer import Answer
from .probes import ProtocolProbe

__all__ = ["BoundProbe", "choose_profile", "list_bound_probes"]

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_STEPS = {"integer": (0, 1, -1), "number": (0, 0.01, -0.01)}
_MOST_VALUE = 10
"""A larger value of a field costs tokens or time."""


@dataclass(frozen=True, slots=True)
class BoundProbe:
    """A value of a field that some profiles accept and others refuse."""

    field: str
    value: JsonValue
    accepting: frozenset[str]


def list_bound_probes(dialect: str, protocol: str) -> list[BoundProbe]:
    """List one value for each field in whose range the dialect's profiles differ."""
    profiles = tuple(load_dialect(dialect).profiles)
    shapes = {name: load(f"{dialect}/{protocol}.request", name)["properties"] for name in profiles}
    fields = dict.fromkeys(field for properties in shapes.values() for field in properties)
    found = (_find_bound(field, {name: shapes[name].get(field) for name in profiles}) for field in fields)
    return [probe for probe in found if probe is not None]


def _find_bound(field: str, rules: dict[str, JsonValue]) -> BoundProbe | None:
    if not all(isinstance(rule, dict) for rule in rules.values()) or len({repr(rule) for rule in rules.values()}) == 1:
        return None
    for value in _list_values(list(rules.values())):
        accepting = frozenset(name for name, rule in rules.items() if Draft202012Validator(rule).is_valid(value))
        if accepting and accepting != rules.keys():
            return BoundProbe(field, value, accepting)
    return None


def _list_values(rules: Sequence[JsonObject]) -> Iterator[float]:
    """Values at the bounds of the rules, and next to them."""
    for rule in rules:
        kinds = rule.get("type", "")
        kind = "integer" if "integer" in kinds else "number" if "number" in kinds else ""
        parts = [rule, *(part for part in rule.get("allOf", ()) if isinstance(part, dict))]
        bounds = [part[key] for part in parts for key in _BOUNDS if key in part]
        for bound in bounds:
            values = [bound + step for step in _STEPS.get(kind, ()) if isinstance(bound, int | float)]
            yield from (value for value in values if abs(value) <= _MOST_VALUE)


async def choose_profile(asker: Asker, findings: Findings, probe: ProtocolProbe) -> None:
    """Learn the profile, if one fits better than each other: first by what it accepts, then by its replies. Raises
    KeyRefusedError, EndpointLostError."""
    profiles = tuple(load_dialect(findings.dialect).profiles)
    fits = {name: _Fit() for name in profiles}
    for bound in list_bound_probes(findings.dialect, probe.name):
        if findings.get(f"fields.{probe.name}.{bound.field}") in ("accepted", None):
            answer = await asker.ask(probe, {bound.field: bound.value}, exactly=True)
            if answer.is_accepted or answer.is_rejected:
                _judge_bound(bound, answer, fits)
    _judge_default(findings, probe, fits)
    for outcome in asker.outcomes:
        _judge_reply(outcome, fits)
    least = min(fit.misfits for fit in fits.values())
    best = [name for name in profiles if fits[name].misfits == least]
    if len(best) == 1:
        findings.learn("profile", best[0], next(iter(fits[best[0]].shown), None))
    else:
        findings.give_up("profile", f"the answers fit {' and '.join(best)} alike")


@dataclass
class _Fit:
    """How a profile fits: the requests that it judges in another way, the problems of replies, and what shows it."""

    requests: int = 0
    problems: set[str] = field(default_factory=set)
    shown: list[Evidence] = field(default_factory=list)

    @property
    def misfits(self) -> tuple[int, int]:
        return self.requests, len(self.problems)


def _judge_bound(bound: BoundProbe, answer: Answer, fits: Mapping[str, _Fit]) -> None:
    for name, fit in fits.items():
        if (name in bound.accepting) != answer.is_accepted:
            fit.requests += 1
        else:
            fit.shown.append(answer.describe("accepted" if answer.is_accepted else ""))


def _judge_default(findings: Findings, probe: ProtocolProbe, fits: Mapping[str, _Fit]) -> None:
    """Judge whether replies are streams if the request does not say so, as the default of `stream` has it."""
    found = findings.facts.get(f"streams_unasked.{probe.name}")
    rules = {name: load(f"{findings.dialect}/{probe.name}.request", name)["properties"].get("stream") for name in fits}
    defaults = {name: rule.get("default", False) is True for name, rule in rules.items() if isinstance(rule, dict)}
    for name, default in defaults.items() if len(set(defaults.values())) > 1 else ():
        if default != (found is not None):
            fits[name].requests += 1
        elif found is not None and found.evidence is not None:
            fits[name].shown.append(found.evidence)


def _judge_reply(outcome: Outcome, fits: Mapping[str, _Fit]) -> None:
    side = "error" if outcome.response.status >= 400 else "event" if outcome.is_sse else "reply"
    schema = f"{outcome.dialect}/{outcome.protocol}.{side}"
    if not has_schema(schema):
        return
    problems = {
        name: {find_cause("fail", text) for body in outcome.objects for text in find_violations(schema, name, body)}
        for name in fits
    }
    other = next((name for name, causes in problems.items() if causes), None)
    for name, causes in problems.items():
        fits[name].problems.update(f"{schema}: {cause}" for cause in causes)
        if not causes and other is not None:
            text = f"{shorten(min(problems[other]), 120)} (in {other})"
            fits[name].shown.append(Evidence(f"{outcome.protocol} {side}", text))
