"""Files of `NAME=value` lines, as `--env-file` takes them."""

from __future__ import annotations

import re
from pathlib import Path

from .problems import ConfigErrors, Problem

__all__ = ["read_env"]

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^#\"']*?))\s*(?:#.*)?")


def read_env(path: Path) -> dict[str, str]:
    """The variables in the file. A line may begin with `export`, quote its value, and end with a `#` comment.

    Nothing is expanded. Raises ConfigErrors with the numbers of bad lines, never with their text.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigErrors([_create_problem(path, 0, "unreadable", error.strerror or "cannot be read")]) from None
    except UnicodeDecodeError:
        raise ConfigErrors([_create_problem(path, 0, "not-text", "the file is not UTF-8 text")]) from None
    variables: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if match := _LINE.fullmatch(line.strip()):
            variables[match[1]] = next((value for value in match.groups()[1:] if value is not None), "")
        else:
            problems.append(_create_problem(path, number, "bad-line", "this line is not NAME=value"))
    if problems:
        raise ConfigErrors(problems)
    return variables


def _create_problem(path: Path, line: int, code: str, message: str) -> Problem:
    hint = "quote a value that contains # or quotes" if line else ""
    return Problem(str(path), line, 1, code, "", message, hint=hint)
