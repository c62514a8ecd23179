"""Problems of a configuration, rendered as text in the style of compilers, as JSON, or as GitHub annotations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["ConfigErrors", "Format", "Problem", "Severity", "Span", "render"]

Severity: TypeAlias = Literal["error", "warning"]
Format: TypeAlias = Literal["text", "json", "github"]

_MAX_WIDTH = 120  # characters of a source line that are shown
_JSON_FIELDS = ("file", "line", "column", "severity", "code", "where", "message", "expected", "hint")


@dataclass(frozen=True, slots=True)
class Span:
    """A range of text. Lines and columns count from 1; the end column is the one after the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `line` and `column` count from 1; line 0 means the whole file. `where` is the key path.

    `source` is the line of the file with secrets masked, `width` the number of characters to underline.
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

    def as_json(self) -> dict[str, str | int]:
        """The problem as `dragoman check --format json` shows it."""
        return {name: getattr(self, name) for name in _JSON_FIELDS}

    @property
    def location(self) -> str:
        """`FILE:LINE:COLUMN`, or `FILE` if the problem is about the whole file."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ConfigErrors(Exception):
    """The configuration is invalid. `problems` has every problem, warnings included, in the order of the file; `files`
    are those that it names, as far as they are known."""

    def __init__(self, problems: Sequence[Problem], files: Sequence[Path] = ()) -> None:
        self.files = tuple(files)
        self.problems = sorted(problems, key=lambda problem: (problem.line, problem.column))
        super().__init__(render(self.problems))


def render(problems: Sequence[Problem], form: Format = "text", *, color: bool = False) -> str:
    """The problems as text, without a line break at the end."""
    if form == "json":
        return json.dumps({"problems": [problem.as_json() for problem in problems]}, indent=2, ensure_ascii=False)
    if form == "github":
        return "\n".join(_format_annotation(problem) for problem in problems)
    return "\n\n".join(_format_text(problem, color) for problem in problems)


def _format_text(problem: Problem, color: bool) -> str:
    label = f"{problem.severity}[{problem.code}]"
    if color:
        label = f"\x1b[1;{31 if problem.severity == 'error' else 33}m{label}\x1b[0m"
    lines = [f"{problem.location}: {label}: {_make_printable(problem.message)}"]
    is_suggestion = problem.hint.startswith("did you mean") and problem.source
    if problem.source:
        lines += _underline(problem, problem.hint if is_suggestion else "")
    if problem.expected:
        lines.append(f"   expected: {_make_printable(problem.expected)}")
    if problem.hint and not is_suggestion:
        lines.append(f"   hint: {_make_printable(problem.hint)}")
    return "\n".join(lines)


def _underline(problem: Problem, note: str) -> list[str]:
    """The source line with carets below it, and a note after the carets. A long line is cut around the problem."""
    start = max(0, problem.column - _MAX_WIDTH // 2) if len(problem.source) > _MAX_WIDTH else 0
    shown = _make_printable(problem.source[start : start + _MAX_WIDTH])
    left = problem.column - 1 - start
    carets = "^" * max(1, min(problem.width, len(shown) - left))
    return [f"{problem.line:>5} | {shown.rstrip()}", f"      | {' ' * left}{carets} {_make_printable(note)}".rstrip()]


def _format_annotation(problem: Problem) -> str:
    text = "\n".join(
        part
        for part in (
            problem.message,
            problem.expected and f"expected: {problem.expected}",
            problem.hint and f"hint: {problem.hint}",
        )
        if part
    )
    place = f"file={_escape_property(problem.file)}"
    if problem.line:
        place += f",line={problem.line},col={problem.column}"
    return f"::{problem.severity} {place},title={_escape_property(problem.code)}::{_escape_data(text)}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _make_printable(text: str) -> str:
    """Replace tabs by spaces, and characters that a terminal might obey by a mark. Columns do not change."""
    return "".join(
        " " if char == "\t" else char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
    )
