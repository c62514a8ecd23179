"""What is wrong with a configuration, for people (as compilers show it), for programs and for GitHub's annotations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["ConfigErrors", "Format", "Problem", "Severity", "Span", "render"]

Severity: TypeAlias = Literal["error", "warning"]
Format: TypeAlias = Literal["text", "json", "github"]

_WIDEST = 120  # characters of a source line that are shown
_PUBLIC = ("file", "line", "column", "severity", "code", "where", "message", "expected", "hint")


@dataclass(frozen=True, slots=True)
class Span:
    """From a line and column to another, counted from 1; the end column is the one after the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong. `line` and `column` count from 1; line 0 means the file as a whole. `where` is the key path.

    `source` is the line in the file, secrets masked; `width` the number of characters to underline.
    """

    file: str
    line: int
    column: int
    code: str
    where: str
    message: str
    expected: str = ""
    hint: str = ""
    severity: Severity = "error"
    source: str = ""
    width: int = 1

    def public(self) -> dict[str, str | int]:
        return {name: getattr(self, name) for name in _PUBLIC}

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ConfigErrors(Exception):
    """The configuration cannot be used. `problems` holds everything found, warnings too, in the file's order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.line, problem.column))
        super().__init__(render(self.problems))


def render(problems: Sequence[Problem], form: Format = "text", *, color: bool = False) -> str:
    """The problems as text, without a line break at the end."""
    if form == "json":
        return json.dumps({"problems": [problem.public() for problem in problems]}, indent=2, ensure_ascii=False)
    if form == "github":
        return "\n".join(_annotation(problem) for problem in problems)
    return "\n\n".join(_explained(problem, color) for problem in problems)


def _explained(problem: Problem, color: bool) -> str:
    label = f"{problem.severity}[{problem.code}]"
    if color:
        label = f"\x1b[1;{31 if problem.severity == 'error' else 33}m{label}\x1b[0m"
    lines = [f"{problem.place}: {label}: {_clean(problem.message)}"]
    beside = problem.hint.startswith("did you mean") and problem.source
    if problem.source:
        lines += _underlined(problem, problem.hint if beside else "")
    if problem.expected:
        lines.append(f"   expected: {_clean(problem.expected)}")
    if problem.hint and not beside:
        lines.append(f"   hint: {_clean(problem.hint)}")
    return "\n".join(lines)


def _underlined(problem: Problem, beside: str) -> list[str]:
    """The source line with carets below it; of a long line only the part around the place."""
    start = max(0, problem.column - _WIDEST // 2) if len(problem.source) > _WIDEST else 0
    shown = _clean(problem.source[start : start + _WIDEST])
    left = problem.column - 1 - start
    carets = "^" * max(1, min(problem.width, len(shown) - left))
    return [f"{problem.line:>5} | {shown.rstrip()}", f"      | {' ' * left}{carets} {_clean(beside)}".rstrip()]


def _annotation(problem: Problem) -> str:
    text = "\n".join(
        part
        for part in (
            problem.message,
            problem.expected and f"expected: {problem.expected}",
            problem.hint and f"hint: {problem.hint}",
        )
        if part
    )
    place = f"file={_property(problem.file)}"
    if problem.line:
        place += f",line={problem.line},col={problem.column}"
    return f"::{problem.severity} {place},title={_property(problem.code)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _clean(text: str) -> str:
    """One character for each, so that columns stay: spaces for tabs, a mark for what a terminal might obey."""
    return "".join(
        " " if char == "\t" else char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
    )
