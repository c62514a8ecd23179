"""Checks of values and headers. A path reads the body of a whole reply; in a stream, its last JSON object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.contract import judge
from dragoman.contract.outcome import Outcome
from dragoman.contract.paths import ABSENT, at

from .rule import Problems, Rule, short

__all__ = ["BODIES", "compared", "fits"]

_PATHS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_BY_PATH = {"type": "object", "minProperties": 1}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def _subject(outcome: Outcome) -> Any:
    if not outcome.is_sse:
        return outcome.body
    return outcome.objects[-1] if outcome.objects else ABSENT


def compared(value: Any, wanted: Mapping[str, Any], holds: Callable[[Any, Any], bool], word: str) -> Problems:
    """A problem for each path at which it does not hold."""
    found = ((path, at(value, path), expected) for path, expected in wanted.items())
    return [
        f"{path} is {short(got)}, {word} {short(expected)}" for path, got, expected in found if not holds(got, expected)
    ]


def equal(got: Any, expected: Any) -> bool:
    """As JSON: true is not 1."""
    return got is not ABSENT and isinstance(got, bool) == isinstance(expected, bool) and bool(got == expected)


def matching(got: Any, pattern: Any) -> bool:
    return isinstance(got, str | int | float) and re.search(str(pattern), str(got)) is not None


def _of_type(got: Any, name: Any) -> bool:
    names = name if isinstance(name, list) else [name]
    if isinstance(got, bool):
        return "boolean" in names
    return any(isinstance(got, _TYPES[str(one)]) for one in names)


def _by_path(holds: Callable[[Any, Any], bool], word: str) -> Callable[[Outcome, Any], Problems]:
    return lambda outcome, wanted: compared(_subject(outcome), wanted, holds, word)


def _present(outcome: Outcome, paths: list[str]) -> Problems:
    return [f"{path} is missing" for path in paths if at(_subject(outcome), path) is ABSENT]


def _absent(outcome: Outcome, paths: list[str]) -> Problems:
    found = ((path, at(_subject(outcome), path)) for path in paths)
    return [f"{path} is there: {short(got)}" for path, got in found if got is not ABSENT and got is not None]


def _unique(outcome: Outcome, path: str) -> Problems:
    values = at(_subject(outcome), path)
    if not isinstance(values, list):
        return [f"{path} leads to {short(values)}, not to several values"]
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    return [f"{path}: {', '.join(twice)} more than once"] if twice else []


def _header(outcome: Outcome, wanted: Mapping[str, str | None]) -> Problems:
    """Header name -> a pattern that its value has, null where it may not be there."""
    problems = []
    for name, pattern in wanted.items():
        value = outcome.answer.header(name.lower())
        if pattern is None and value is not None:
            problems.append(f"header {name} is there: {short(value)}")
        elif pattern is not None and (value is None or re.search(pattern, value, re.IGNORECASE) is None):
            problems.append(f"header {name} is {short(value)}, expected to match {pattern!r}")
    return problems


def _if_ok(outcome: Outcome, wanted: Mapping[str, str]) -> Problems:
    """A proxy may make of an odd reply a good one, or an error: nothing between."""
    side = wanted["schema"] if outcome.answer.status < 400 else "error"
    return fits(f"{outcome.dialect}/{outcome.protocol}.{side}", outcome.profile, outcome.body)


def _complete(outcome: Outcome, side: str) -> Problems:
    name = f"{outcome.dialect}/{outcome.protocol}.{side}"
    found = [judge.judged(name, outcome.profile, body).unsaid for body in outcome.objects]
    return [f"event {place}: {said}" if side == "event" else said for place, told in enumerate(found) for said in told][
        :5
    ]


def _status(outcome: Outcome, wanted: list[int]) -> Problems:
    got = outcome.answer.status
    return [] if got in wanted else [f"the status is {got}, expected {' or '.join(map(str, wanted))}"]


def _without(outcome: Outcome, texts: list[str]) -> Problems:
    return [f"the reply contains {text!r}" for text in texts if text in outcome.text]


def _contains_any(outcome: Outcome, texts: list[str]) -> Problems:
    return [] if any(text in outcome.text for text in texts) else [f"the reply has none of {short(texts)}"]


def fits(schema: str, profile: str, value: Any) -> Problems:
    if value is ABSENT:
        return ["it is no JSON"]
    return judge.violations(schema, profile, value)


BODIES: Mapping[str, Rule] = {
    "equals": Rule("the value at each path is the one given", _by_path(equal, "expected"), _BY_PATH),
    "matches": Rule("the value at each path matches the pattern", _by_path(matching, "expected to match"), _BY_PATH),
    "one_of": Rule(
        "the value at each path is one of those given",
        _by_path(lambda got, expected: any(equal(got, one) for one in expected), "expected one of"),
        _BY_PATH,
    ),
    "type": Rule("the value at each path is of that JSON type", _by_path(_of_type, "expected a"), _BY_PATH),
    "count": Rule(
        "the list at each path has that many items",
        _by_path(lambda got, number: isinstance(got, list) and len(got) == number, "expected so many items:"),
        _BY_PATH,
    ),
    "at_least": Rule(
        "the number at each path is that or more",
        _by_path(lambda got, number: isinstance(got, int | float) and got >= number, "expected at least"),
        _BY_PATH,
    ),
    "at_most": Rule(
        "the number at each path is that or less",
        _by_path(lambda got, number: isinstance(got, int | float) and got <= number, "expected at most"),
        _BY_PATH,
    ),
    "differs": Rule(
        "the value at each path is there, and another than the one given",
        _by_path(lambda got, other: got is not ABSENT and not equal(got, other), "expected other than"),
        _BY_PATH,
    ),
    "if_ok": Rule(
        "a success fits the schema of that side, a failure that of errors",
        _if_ok,
        {"type": "object", "required": ["schema"], "properties": {"schema": {"const": "reply"}}},
    ),
    "complete": Rule(
        "no key is missing that the schema of that side requires and would take as null",
        _complete,
        {"enum": ["reply", "event"]},
    ),
    "contains_any": Rule("one of these texts is in the reply", _contains_any, _PATHS),
    "status": Rule(
        "the status is one of these", _status, {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    ),
    "present": Rule("each path leads to a value", _present, _PATHS),
    "absent": Rule("no path leads to a value other than null", _absent, _PATHS),
    "unique": Rule("the values at a path with [*] are all different", _unique, {"type": "string"}),
    "header": Rule("each header matches its pattern; null: it is not there", _header, _BY_PATH),
    "without": Rule("none of these texts is in the reply", _without, _PATHS),
}
