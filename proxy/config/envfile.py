"""Files of `NAME=value` lines: `.env` next to the configuration file, or the one that `--env-file` names."""

from __future__ import annotations

import re
from pathlib import Path

from .problems import ConfigErrors, Problem

__all__ = ["FILE", "parse_env", "read_env", "write_variable"]

FILE = ".env"
"""The name of the file that is read next to a configuration file."""

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^#\"']*?))\s*(?:#.*)?")


def read_env(path: Path) -> dict[str, str]:
    """The variables in the file. Raises ConfigErrors with the numbers of bad lines, never with their text."""
    variables, problems = parse_env(path)
    if problems:
        raise ConfigErrors(problems)
    return variables


def parse_env(path: Path) -> tuple[dict[str, str], list[Problem]]:
    """The variables in the file, and a problem for each line that is none. A line may begin with `export`, quote its
    value, and end with a `#` comment. Nothing is expanded."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        return {}, [_create_problem(path, 0, "unreadable", error.strerror or "cannot be read")]
    except UnicodeDecodeError:
        return {}, [_create_problem(path, 0, "not-text", "the file is not UTF-8 text")]
    variables: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if match := _LINE.fullmatch(line.strip()):
            variables[match[1]] = next((value for value in match.groups()[1:] if value is not None), "")
        else:
            problems.append(_create_problem(path, number, "bad-line", "this line is not NAME=value"))
    return variables, problems


def write_variable(name: str, value: str) -> str:
    """The line of a variable. Raises ValueError for a value that no line can hold."""
    quote = '"' if '"' not in value else "'"
    line = f"{name}={quote}{value}{quote}"
    if _LINE.fullmatch(line) is None or "\n" in value:
        raise ValueError(f"the value of {name} has quotation marks or line breaks")
    return f"{line}\n"


def _create_problem(path: Path, line: int, code: str, message: str) -> Problem:
    hint = "quote a value that contains # or quotes" if line else ""
    return Problem(str(path), line, 1, code, "", message, hint=hint)
