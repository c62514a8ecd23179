"""Case files: YAML, validated against `schemas/case.json` and against the vocabulary of checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from .checks import REPLY_CHECKS, UPSTREAM_CHECKS, Rule
from .dialects import DIALECTS, Dialect, load_dialect
from .json_types import JsonObject, JsonValue
from .model import Case, Check, Expectation, Level, Step, UpstreamPlan
from .placeholders import fill_placeholders
from .quirk_cases import iterate_quirk_cases

__all__ = ["BUILT_IN_CASES", "CaseFileError", "load_cases", "read_case_file"]

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

BUILT_IN_CASES = Path(str(files(__package__).joinpath("cases")))
"""The folder of the built-in cases."""


class CaseFileError(ValueError):
    """Some case files are invalid; `problems` has a line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_cases(folder: Path = BUILT_IN_CASES) -> tuple[Case, ...]:
    """Load the cases of every file under that folder, sorted by file, one for each dialect of the case.

    Raises CaseFileError with the problems of all files.
    """
    return _load_built_in_cases() if folder == BUILT_IN_CASES else _read_folder(folder)


@cache
def _load_built_in_cases() -> tuple[Case, ...]:
    quirks = {"protocol": "chat", "cases": list(iterate_quirk_cases())}
    return (*_read_folder(BUILT_IN_CASES), *_read_content("quirks", quirks, is_built_in=True))


def _read_folder(folder: Path) -> tuple[Case, ...]:
    problems: list[str] = []
    cases: list[Case] = []
    for file in sorted(folder.rglob("*.yaml")):
        try:
            cases += read_case_file(file)
        except CaseFileError as errors:
            problems += errors.problems
    problems += _find_duplicate_ids(cases)
    if not cases and not problems:
        problems.append(f"{folder}: the folder has no case file (*.yaml)")
    if problems:
        raise CaseFileError(problems)
    return tuple(cases)


def read_case_file(file: Path) -> list[Case]:
    """Read the cases of one file. Raises CaseFileError."""
    try:
        is_built_in = file.is_relative_to(BUILT_IN_CASES)  # those are read by libyaml if it is there, which is faster
        content = YAML(typ="safe", pure=not is_built_in).load(file.read_text("utf-8"))
    except (MarkedYAMLError, UnicodeDecodeError, OSError) as error:
        raise CaseFileError([f"{file}: {error}"]) from None
    return _read_content(str(file), content, is_built_in)


def _read_content(file: str, content: JsonValue, is_built_in: bool) -> list[Case]:
    problems: list[str] = []
    if not (is_built_in and _quick_validator().is_valid(content)):
        problems = [f"{file}: {_locate(error)}: {error.message}" for error in _schema_validator().iter_errors(content)]
    if problems:
        raise CaseFileError(problems)
    problems = [
        f"{file}: there is no dialect {name!r}; there are: {', '.join(DIALECTS)}"
        for name in _find_unknown_dialects(content)
    ]
    if problems:
        raise CaseFileError(problems)
    cases = [case for text in content["cases"] for case in _build_cases(text, content)]
    problems = [f"{file}: {case.id}: {problem}" for case in cases for problem in _find_problems(case)]
    if problems:
        raise CaseFileError(list(dict.fromkeys(problems)))
    return cases


def _find_unknown_dialects(content: JsonObject) -> Iterator[str]:
    """Find the names that should be a dialect or a tag, and are neither."""
    known = {"all", "else", *(word for name in DIALECTS for word in load_dialect(name).names)}
    for text in (content, *content["cases"]):
        yield from (word for key in ("dialects", "upstreams") for word in text.get(key, ()) if word not in known)
        for step in text.get("steps", ()):
            status = step["expect"]["status"]
            maps = (step["request"].get("for"), step["expect"].get("for"), status if isinstance(status, dict) else None)
            yield from (word for words in maps for word in words or () if word not in known)


@cache
def _schema_validator() -> Draft202012Validator:
    return Draft202012Validator(_load_schema())


@cache
def _quick_validator() -> jsonschema_rs.Draft202012Validator:
    """For content whose values are all JSON, as those of the built-in files are: a user's YAML may have dates."""
    return jsonschema_rs.Draft202012Validator(_load_schema())


def _load_schema() -> JsonObject:
    schema: JsonObject = json.loads(files(__package__).joinpath("schemas", "case.json").read_text("utf-8"))
    return schema


def _locate(error: ValidationError) -> str:
    return "/".join(str(part) for part in error.absolute_path) or "the file"


def _build_cases(text: JsonObject, defaults: JsonObject) -> Iterator[Case]:
    """Build a case for each value of `each` and each dialect. `defaults` is the whole file."""
    for values in text.get("each", [{}]):
        one = _fill_each(text, values) if values else text
        protocol: str = one.get("protocol") or defaults["protocol"]
        named: list[str] | None = one.get("dialects") or defaults.get("dialects")
        for dialect in map(load_dialect, DIALECTS):
            if protocol in dialect.paths and (named is None or not set(dialect.names).isdisjoint(named)):
                yield _build_case(one, defaults, protocol, dialect)


def _fill_each(text: JsonObject, values: Mapping[str, JsonValue]) -> JsonObject:
    """Fill in ${each.*}; other placeholders stay."""
    kept = {"model": "${model}", "key": "${key}", "n": "${n}", "saved": _DeferredValues("saved"), "image": "${image}"}
    return {key: fill_placeholders(value, {**kept, "each": values}) for key, value in text.items() if key != "each"}


class _DeferredValues(dict[str, JsonValue]):
    """Maps every name to its own placeholder, for values that only a run knows."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> str:
        return f"${{{self._name}.{key}}}"


def _build_case(text: JsonObject, defaults: JsonObject, protocol: str, dialect: Dialect) -> Case:
    level: Level = text["level"]
    return Case(
        id=text["id"],
        title=text["title"],
        source=text.get("source") or defaults.get("source") or "",
        level=level,
        protocol=protocol,
        dialect=dialect.name,
        steps=tuple(_build_step(step, level, dialect, driven="upstreams" in text) for step in text["steps"]),
        needs=frozenset(text.get("needs", ())),
        max_tokens=text.get("max_tokens", sum(_count_tokens(step["request"]) for step in text["steps"])),
        upstreams=_list_upstreams(text.get("upstreams", ())),
        profiles=tuple(text.get("profiles", ())),
        probe=text.get("probe", False),
        hostile=text.get("hostile", False) or any(_has_broken_limit(step["request"]) for step in text["steps"]),
    )


def _read_limits(request: JsonObject) -> list[JsonValue]:
    body = request.get("body")
    return [body[name] for name in _LIMITS if name in body] if isinstance(body, dict) else []


def _count_tokens(request: JsonObject) -> int:
    """Count what the model may write although the request must be refused: a lenient server answers it."""
    return sum(limit for limit in _read_limits(request) if isinstance(limit, int) and limit > 0)


def _has_broken_limit(request: JsonObject) -> bool:
    """A lenient server that ignores the limit of such a request generates without end."""
    return any(not isinstance(limit, int) or limit < 0 for limit in _read_limits(request))


def _list_upstreams(named: Sequence[str]) -> tuple[str, ...]:
    """List the dialects of the fake providers that the case drives; `all` means every dialect."""
    if "all" in named:
        return DIALECTS
    return tuple(name for name in DIALECTS if not set(load_dialect(name).names).isdisjoint(named))


def _build_step(text: JsonObject, level: Level, dialect: Dialect, *, driven: bool) -> Step:
    upstream = text.get("upstream")
    plan = None
    if upstream is not None:
        sent = _build_checks(upstream.get("sent", ()), level, driven)
        plan = UpstreamPlan(tuple(upstream.get("script", ())), sent, upstream.get("protocol", ""))
    expectation = _build_expectation(text["expect"], level, dialect, driven)
    return Step(text["request"], expectation, text.get("save", {}), plan)


def _build_expectation(text: JsonObject, level: Level, dialect: Dialect, driven: bool) -> Expectation:
    status = text["status"]
    if isinstance(status, dict):
        status = dialect.select(status) or status.get("else", 200)
    added = dialect.select(text.get("for", {})) or ()
    return Expectation(
        status=tuple(status) if isinstance(status, list) else (status,),
        schema=text.get("schema"),
        checks=(
            *_build_checks([*text.get("checks", ()), *added], level, driven),
            *_build_checks(text.get("should", ()), "SHOULD", driven),
        ),
        cooperation=_build_checks(text.get("cooperation", ()), level, driven),
    )


def _build_checks(texts: Sequence[JsonValue], level: Level, driven: bool) -> tuple[Check, ...]:
    pairs = [(text, None) if isinstance(text, str) else next(iter(text.items())) for text in texts]
    return tuple(Check(name, arg, _limit_level(name, level, driven)) for name, arg in pairs)


def _limit_level(name: str, level: Level, driven: bool) -> Level:
    """Limit the level of a check that no reference demands, or that a case of its own judges, to SHOULD."""
    rule = REPLY_CHECKS.get(name) or UPSTREAM_CHECKS.get(name)
    limited = rule is not None and (rule.is_advice or (rule.has_own_case and not driven))
    return "SHOULD" if level == "MUST" and limited else level


def _find_problems(case: Case) -> Iterator[str]:
    if not case.source:
        yield "the case names no source"
    for step in case.steps:
        yield from _find_invalid_checks((*step.expect.checks, *step.expect.cooperation), REPLY_CHECKS)
        if "leave" in step.request and not case.upstreams:
            yield "a step has `leave`, but the case names no `upstreams`: only a fake provider can observe it"
        if step.upstream is not None:
            yield from _find_invalid_checks(step.upstream.sent, UPSTREAM_CHECKS)
            if not case.upstreams:
                yield "a step has `upstream`, but the case names no `upstreams`"


def _find_invalid_checks(checks: Sequence[Check], rules: Mapping[str, Rule]) -> Iterator[str]:
    for check in checks:
        rule = rules.get(check.name)
        if rule is None:
            yield f"there is no check {check.name!r}; there are: {', '.join(rules)}"
        elif rule.argument_schema is None and check.arg is not None:
            yield f"the check {check.name} takes no argument"
        elif rule.argument_schema is not None:
            for error in Draft202012Validator(rule.argument_schema).iter_errors(check.arg):
                yield f"the argument of {check.name}: {error.message}"


def _find_duplicate_ids(cases: Sequence[Case]) -> list[str]:
    seen: set[tuple[str, str]] = set()
    duplicates: list[str] = []
    for case in cases:
        if (case.id, case.dialect) in seen:
            duplicates.append(f"two cases have the id {case.id} in {case.dialect}")
        seen.add((case.id, case.dialect))
    return duplicates
