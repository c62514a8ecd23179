"""Checks of values and headers. A path reads the body of a whole reply, or the last JSON object of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.schema_validation import find_violations, validate_body

from .excuses import excuse_odd_characters
from .rule import FindProblems, Problems, Rule, shorten

__all__ = ["BODY_CHECKS", "compare_paths", "describe_body", "find_schema_problems", "is_equal", "matches_pattern"]

_PATH_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_VALUE_BY_PATH = {"type": "object", "minProperties": 1}
Comparison: TypeAlias = Callable[[JsonValue, JsonValue], bool]

_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def compare_paths(value: JsonValue, wanted: Mapping[str, JsonValue], holds: Comparison, word: str) -> Problems:
    """Return a problem for each path whose value does not satisfy `holds`; `word` begins the expectation."""
    found = ((path, find_value(value, path), expected) for path, expected in wanted.items())
    return [
        f"{path} is {shorten(got)}, {word} {shorten(expected)}"
        for path, got, expected in found
        if not holds(got, expected)
    ]


def is_equal(got: JsonValue, expected: JsonValue) -> bool:
    """Compare JSON values: true is not 1."""
    return got is not ABSENT and isinstance(got, bool) == isinstance(expected, bool) and bool(got == expected)


def matches_pattern(got: JsonValue, pattern: JsonValue) -> bool:
    return isinstance(got, str | int | float) and re.search(str(pattern), str(got)) is not None


def _is_of_type(got: JsonValue, name: JsonValue) -> bool:
    names = name if isinstance(name, list) else [name]
    if isinstance(got, bool):
        return "boolean" in names
    return any(isinstance(got, _JSON_TYPES[str(one)]) for one in names)


def _check_paths(holds: Comparison, word: str) -> FindProblems:
    return lambda outcome, wanted: compare_paths(outcome.last_object, wanted, holds, word)


def _check_present(outcome: Outcome, paths: list[str]) -> Problems:
    return [f"{path} is missing" for path in paths if find_value(outcome.last_object, path) is ABSENT]


def _check_absent(outcome: Outcome, paths: list[str]) -> Problems:
    found = ((path, find_value(outcome.last_object, path)) for path in paths)
    return [f"{path} is present: {shorten(got)}" for path, got in found if got is not ABSENT and got is not None]


def _check_unique(outcome: Outcome, path: str) -> Problems:
    values = find_value(outcome.last_object, path)
    if not isinstance(values, list):
        return [f"{path} is {shorten(values)}, expected several values"]
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    return [f"{path}: {', '.join(repeated)} more than once"] if repeated else []


def _check_headers(outcome: Outcome, wanted: Mapping[str, str | None]) -> Problems:
    """`wanted` maps a header to the pattern that its value must match, or to null if the header must be absent."""
    problems = []
    for name, pattern in wanted.items():
        value = outcome.response.header(name.lower())
        if pattern is None and value is not None:
            problems.append(f"header {name} is present: {shorten(value)}")
        elif pattern is not None and (value is None or re.search(pattern, value, re.IGNORECASE) is None):
            problems.append(f"header {name} is {shorten(value)}, expected to match {pattern!r}")
    return problems


def _check_if_ok(outcome: Outcome, wanted: Mapping[str, JsonValue]) -> Problems:
    """A proxy turns a broken reply into a correct one, or into an error. It may leave out the `optional` keys."""
    side = wanted["schema"] if outcome.response.status < 400 else "error"
    if outcome.is_sse:
        schema = f"{outcome.dialect}/{outcome.protocol}.{side}"
        found = (find_violations(schema, outcome.profile, body) for body in outcome.objects)
        return [f"event {position}: {text}" for position, texts in enumerate(found) for text in texts][:5]
    return find_schema_problems(f"{outcome.dialect}/{outcome.protocol}.{side}", outcome, wanted.get("optional", ()))


def _check_complete(outcome: Outcome, side: str) -> Problems:
    name = f"{outcome.dialect}/{outcome.protocol}.{side}"
    found = [validate_body(name, outcome.profile, body).null_keys for body in outcome.objects]
    problems = [(position, problem) for position, missing in enumerate(found) for problem in missing][:5]
    return [f"event {position}: {problem}" if side == "event" else problem for position, problem in problems]


def _check_status(outcome: Outcome, wanted: list[int]) -> Problems:
    got = outcome.response.status
    return [] if got in wanted else [f"the status is {got}, expected {' or '.join(map(str, wanted))}"]


def _check_without(outcome: Outcome, texts: list[str]) -> Problems:
    whole = "".join([outcome.text, *outcome.content.texts])  # JSON may have a character as \\uXXXX
    return [f"the reply contains {text!r}" for text in texts if text in whole]


def _check_contains_any(outcome: Outcome, texts: list[str]) -> Problems:
    return [] if any(text in outcome.text for text in texts) else [f"the reply contains none of {shorten(texts)}"]


def find_schema_problems(schema: str, outcome: Outcome, ignored: Collection[str] = ()) -> Problems:
    """Find the violations of a schema by the body of a whole reply."""
    if outcome.body is ABSENT:
        return [describe_body(outcome)]
    return find_violations(schema, outcome.profile, outcome.body, ignored)


def describe_body(outcome: Outcome) -> str:
    """Say what a body is that is not JSON."""
    kind = (outcome.response.header("content-type") or "").split(";")[0].strip()
    if outcome.is_sse:
        return f"the reply is an event stream of {len(outcome.events)} events, expected one JSON body"
    what = "empty" if not outcome.response.body else f"not JSON: {shorten(outcome.text, 80)}"
    return f"the body is {what} (content-type: {kind or 'none'})"


BODY_CHECKS: Mapping[str, Rule] = {
    "equals": Rule(
        "the value at each path equals the given one",
        _check_paths(is_equal, "expected"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "matches": Rule(
        "the value at each path matches the pattern",
        _check_paths(matches_pattern, "expected to match"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "one_of": Rule(
        "the value at each path is one of the given ones",
        _check_paths(lambda got, expected: any(is_equal(got, one) for one in expected), "expected one of"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "type": Rule(
        "the value at each path has that JSON type",
        _check_paths(_is_of_type, "expected a"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "count": Rule(
        "the list at each path has that many items",
        _check_paths(
            lambda got, number: isinstance(got, list) and len(got) == number, "expected this number of items:"
        ),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "at_least": Rule(
        "the number at each path is at least that",
        _check_paths(lambda got, number: isinstance(got, int | float) and got >= number, "expected at least"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "at_most": Rule(
        "the number at each path is at most that",
        _check_paths(lambda got, number: isinstance(got, int | float) and got <= number, "expected at most"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "differs": Rule(
        "the value at each path is present and differs from the given one",
        _check_paths(lambda got, other: got is not ABSENT and not is_equal(got, other), "expected a value other than"),
        _VALUE_BY_PATH,
        needs_model=True,
    ),
    "if_ok": Rule(
        "a success matches the schema of that side, a failure the schema of errors",
        _check_if_ok,
        {
            "type": "object",
            "required": ["schema"],
            "properties": {"schema": {"enum": ["reply", "event"]}, "optional": _PATH_LIST},
        },
    ),
    "complete": Rule(
        "no required key is missing, not even one that may be null, and no key is null that may not be",
        _check_complete,
        {"enum": ["reply", "event", "error"]},
    ),
    "contains_any": Rule("the reply contains one of these texts", _check_contains_any, _PATH_LIST, needs_model=True),
    "status": Rule(
        "the status is one of these", _check_status, {"type": "array", "items": {"type": "integer"}, "minItems": 1}
    ),
    "present": Rule("each path leads to a value", _check_present, _PATH_LIST, needs_model=True),
    "absent": Rule("no path leads to a value other than null", _check_absent, _PATH_LIST, needs_model=True),
    "unique": Rule("the values at a path with [*] are distinct", _check_unique, {"type": "string"}),
    "header": Rule("each header matches its pattern; null: the header is absent", _check_headers, _VALUE_BY_PATH),
    "without": Rule(
        "the reply contains none of these texts",
        _check_without,
        _PATH_LIST,
        needs_model=True,
        find_excuse=excuse_odd_characters,
    ),
}
