"""What must hold for every generated case, and the findings where it does not."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, NamedTuple, Protocol

import orjson

from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path, lookup, trim_path
from dragoman.adapters.pipeline import Pipeline
from dragoman.adapters.validation import load_validator
from dragoman.schemas import names

from .pairs import Pair

__all__ = ["Case", "Finding", "Observer", "find_bad_path", "find_bad_rendering", "take_snapshot"]

_ROOT = FilePath(__file__).parents[2]
_ABSENT = ("missing_required_parameter", "string_below_min_length")  # the latter where a dialect fills an empty text


class Finding(NamedTuple):
    """A law that does not hold. Findings with the same `law` and `place` have the same cause."""

    law: str
    place: str
    text: str


class Case(Protocol):
    """Something generated. It can be checked any number of times."""

    def run(self) -> tuple[str, list[Finding]]:
        """A word about what came of it, and the laws that do not hold."""

    def check(self) -> list[Finding]:
        """The laws that do not hold."""

    def simplify(self) -> Iterator[Case]:
        """Cases that are a little smaller, the much smaller ones first."""

    def describe(self) -> str:
        """All of it, for people, in a few lines."""


class Observer:
    """Collects findings of one case; `report_defect` is for the pipeline."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def report_defect(self, provider: str, error: Exception) -> None:
        self.add_error("a defect is reported", error)

    def add_error(self, law: str, error: BaseException) -> None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
        place = f"{_shorten(frames[-1].filename)}:{frames[-1].lineno}" if frames else "?"
        chain = " < ".join(f"{_shorten(one.filename)}:{one.lineno}" for one in reversed(frames[-4:]))
        self.add(law, f"{type(error).__name__} at {place}", f"{type(error).__name__}: {str(error)[:200]} ({chain})")

    def add(self, law: str, place: str, text: str) -> None:
        self.findings.append(Finding(law, place, text))


def _is_ours(file: str) -> bool:
    return "adapters" in file or "schemas" in file


def _shorten(file: str) -> str:
    path = FilePath(file)
    real = path.resolve()
    return str(real.relative_to(_ROOT)) if real.is_relative_to(_ROOT) else path.name


def take_snapshot(value: Any) -> str:
    """A text that changes with any change of a JSON value, the order of its keys included."""
    return json.dumps(value)


def find_bad_path(fault: Fault, body: Any) -> str | None:
    """The path of a fault, if the client's request has no such place. A parameter that was left out has one."""
    path: Path = fault.path
    if len(path) == 1 and isinstance(path[0], str):
        return None
    if fault.code in _ABSENT and fault.owner == "client" and isinstance(lookup(body, path[:-1]), dict):
        path = path[:-1]
    return None if trim_path(body, path) == path else format_path(fault.path) or None


def find_bad_rendering(pair: Pair, pipeline: Pipeline, fault: Fault) -> str | None:
    """Why the error that the client gets is none of its dialect, None if it is one."""
    reply = pipeline.render_fault(fault)
    body = orjson.loads(orjson.dumps(reply.body))
    name = f"{pair.client}/{pair.spoken}.error"
    if name not in names():
        return None
    validator = load_validator(name, pair.profile)
    return None if validator.accepts(body) else next(validator.violations(body)).message
