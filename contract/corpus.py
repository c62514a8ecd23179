"""Reading cases: files of YAML, checked by `schemas/case.json` and against the vocabulary of checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from .checks import CHECKS, SENT, Rule
from .dialects import DIALECTS, dialect
from .model import Case, Check, Drive, Expect, Json, Level, Step
from .target import for_dialect
from .values import filled

__all__ = ["BUILT_IN", "CaseErrors", "load_cases", "read_file"]

BUILT_IN = Path(str(files(__package__).joinpath("cases")))
"""The folder of the cases that dragoman brings along."""


class CaseErrors(ValueError):
    """What is wrong with the files of cases: a line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_cases(folder: Path = BUILT_IN) -> tuple[Case, ...]:
    """Every case of every file under that folder, sorted by file, for every dialect that it is about.

    Raises CaseErrors with all that is wrong in all files.
    """
    return _built_in() if folder == BUILT_IN else _loaded(folder)


@cache
def _built_in() -> tuple[Case, ...]:
    return _loaded(BUILT_IN)


def _loaded(folder: Path) -> tuple[Case, ...]:
    problems: list[str] = []
    cases: list[Case] = []
    for file in sorted(folder.rglob("*.yaml")):
        try:
            cases += read_file(file)
        except CaseErrors as errors:
            problems += errors.problems
    problems += _twice(cases)
    if not cases and not problems:
        problems.append(f"{folder}: no file of cases (*.yaml) here")
    if problems:
        raise CaseErrors(problems)
    return tuple(cases)


def read_file(file: Path) -> list[Case]:
    """Raises CaseErrors."""
    try:
        content = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    except (MarkedYAMLError, UnicodeDecodeError, OSError) as error:
        raise CaseErrors([f"{file}: {error}"]) from None
    problems = [f"{file}: {_place(error)}: {error.message}" for error in _shape().iter_errors(content)]
    if problems:
        raise CaseErrors(problems)
    problems = [
        f"{file}: there is no dialect {word!r}; there are: {', '.join(DIALECTS)}" for word in _strangers(content)
    ]
    if problems:
        raise CaseErrors(problems)
    cases = [case for text in content["cases"] for case in _cases(text, content)]
    problems = [f"{file}: {case.id}: {problem}" for case in cases for problem in _wrong_checks(case)]
    if problems:
        raise CaseErrors(list(dict.fromkeys(problems)))
    return cases


def _strangers(content: Json) -> Iterator[str]:
    """Words that should name a dialect, and name none."""
    known = {"all", "else", *(word for name in DIALECTS for word in dialect(name).names)}
    for text in (content, *content["cases"]):
        yield from (word for key in ("dialects", "upstreams") for word in text.get(key, ()) if word not in known)
        for step in text.get("steps", ()):
            status = step["expect"]["status"]
            maps = (step["request"].get("for"), step["expect"].get("for"), status if isinstance(status, dict) else None)
            yield from (word for words in maps for word in words or () if word not in known)


@cache
def _shape() -> Draft202012Validator:
    schema = json.loads(files(__package__).joinpath("schemas", "case.json").read_text("utf-8"))
    return Draft202012Validator(schema)


def _place(error: Any) -> str:
    return "/".join(str(part) for part in error.absolute_path) or "the file"


def _cases(text: Json, around: Json) -> Iterator[Case]:
    for values in text.get("each", [{}]):
        one = _each(text, values) if values else text
        protocol: str = one.get("protocol") or around["protocol"]
        named: list[str] | None = one.get("dialects") or around.get("dialects")
        for name in DIALECTS:
            row = dialect(name)
            if protocol in row.paths and (named is None or not set(row.names).isdisjoint(named)):
                yield _case(one, around, protocol, name)


def _each(text: Json, values: Mapping[str, Any]) -> Json:
    """The text with ${each.*} filled in; other placeholders wait for their values."""
    kept = {"model": "${model}", "key": "${key}", "n": "${n}", "saved": _Later("saved"), "image": "${image}"}
    return {key: filled(value, {**kept, "each": values}) for key, value in text.items() if key != "each"}


class _Later(dict[str, Any]):
    """Stands for values that come later: each is its own placeholder."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> str:
        return f"${{{self._name}.{key}}}"


def _case(text: Json, around: Json, protocol: str, name: str) -> Case:
    level: Level = text["level"]
    return Case(
        id=text["id"],
        title=text["title"],
        source=text.get("source") or around.get("source") or "",
        level=level,
        protocol=protocol,
        dialect=name,
        steps=tuple(_step(step, level, name) for step in text["steps"]),
        needs=frozenset(text.get("needs", ())),
        max_tokens=text.get("max_tokens", 0),
        upstreams=_upstreams(text.get("upstreams", ())),
        profiles=tuple(text.get("profiles", ())),
        probe=text.get("probe", False),
    )


def _upstreams(named: Sequence[str]) -> tuple[str, ...]:
    """The dialects that a case drives a fake of; `all` means every one."""
    if "all" in named:
        return DIALECTS
    return tuple(name for name in DIALECTS if not set(dialect(name).names).isdisjoint(named))


def _step(text: Json, level: Level, name: str) -> Step:
    upstream = text.get("upstream")
    drive = None
    if upstream is not None:
        drive = Drive(tuple(upstream.get("script", ())), _checks(upstream.get("sent", ()), level))
    return Step(text["request"], _expect(text["expect"], level, name), text.get("save", {}), drive)


def _expect(text: Json, level: Level, name: str) -> Expect:
    status = text["status"]
    if isinstance(status, dict):
        status = for_dialect(status, name) or status.get("else", 200)
    added = for_dialect(text.get("for", {}), name) or ()
    return Expect(
        status=tuple(status) if isinstance(status, list) else (status,),
        schema=text.get("schema"),
        checks=(*_checks([*text.get("checks", ()), *added], level), *_checks(text.get("should", ()), "SHOULD")),
        cooperation=_checks(text.get("cooperation", ()), level),
    )


def _checks(texts: Sequence[Any], level: Level) -> tuple[Check, ...]:
    pairs = [(text, None) if isinstance(text, str) else next(iter(text.items())) for text in texts]
    return tuple(Check(name, arg, level) for name, arg in pairs)


def _wrong_checks(case: Case) -> Iterator[str]:
    if not case.source:
        yield "it names no source"
    for step in case.steps:
        yield from _unknown((*step.expect.checks, *step.expect.cooperation), CHECKS)
        if "leave" in step.request and not case.upstreams:
            yield "a step leaves, but the case names no `upstreams`: nobody would see it"
        if step.drive is not None:
            yield from _unknown(step.drive.sent, SENT)
            if not case.upstreams:
                yield "a step drives an upstream, but the case names no `upstreams`"


def _unknown(checks: Sequence[Check], known: Mapping[str, Rule]) -> Iterator[str]:
    for check in checks:
        rule = known.get(check.name)
        if rule is None:
            yield f"there is no check {check.name!r}; there are: {', '.join(known)}"
        elif rule.takes is None and check.arg is not None:
            yield f"the check {check.name} takes no argument"
        elif rule.takes is not None:
            for error in Draft202012Validator(rule.takes).iter_errors(check.arg):
                yield f"the argument of {check.name}: {error.message}"


def _twice(cases: Sequence[Case]) -> list[str]:
    seen: set[tuple[str, str]] = set()
    twice: list[str] = []
    for case in cases:
        if (case.id, case.dialect) in seen:
            twice.append(f"two cases have the id {case.id} in {case.dialect}")
        seen.add((case.id, case.dialect))
    return twice
