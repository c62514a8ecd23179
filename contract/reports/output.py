"""The report files: they are checked before the run, and written after it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from dragoman.contract.json_types import JsonObject

from .badge import render_badge
from .html import render_page
from .json_report import serialize_report
from .junit import render_junit
from .markdown import render_markdown

__all__ = ["FORMATS", "OutputError", "check_outputs", "write_reports"]

FORMATS: Mapping[str, Callable[[JsonObject], str]] = {
    "json": serialize_report,
    "junit": render_junit,
    "markdown": render_markdown,
    "html": lambda report: render_page([report]),
    "badge": render_badge,
}
"""Maps a format to the function that renders it."""

_STANDARD_OUTPUT = Path("-")


class OutputError(OSError):
    """A report cannot be written."""


def check_outputs(files: Mapping[str, Path]) -> None:
    """Check that each file can be written, without writing it. Raises OutputError."""
    for name, file in files.items():
        problem = "" if file == _STANDARD_OUTPUT else _find_problem(file)
        if problem:
            raise OutputError(f"--{name} {file}: {problem}")


def _find_problem(file: Path) -> str:
    if file.is_dir():
        return "this is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    return "" if os.access(file if file.exists() else file.parent, os.W_OK) else "no permission to write"


def write_reports(files: Mapping[str, Path], report: JsonObject) -> None:
    """Write the report in each format. Raises OutputError if one cannot be written: the others are, and the error names
    a temporary JSON file that has all results."""
    problems = []
    for name, file in files.items():
        try:
            _write(file, FORMATS[name](report))
        except OSError as error:
            problems.append(f"--{name} {file}: {error.strerror or error}")
    if problems:
        raise OutputError("\n".join([*problems, f"all results are in {_rescue(report)}"]))


def _write(file: Path, text: str) -> None:
    if file == _STANDARD_OUTPUT:
        print(text, end="")
    else:
        file.write_text(text, "utf-8")


def _rescue(report: JsonObject) -> str:
    handle, name = tempfile.mkstemp(prefix="dragoman-contract-", suffix=".json")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(serialize_report(report))
    return name
