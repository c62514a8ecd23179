"""Secrets that stand in the file itself are never shown: where they are, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dragoman.adapters.paths import Path

from .problems import Span

__all__ = ["hide", "is_secret", "looks_secret", "masked", "masked_by_name"]

_KNOWN = re.compile(r"\b(?:sk-[\w-]{12,}|dapi[0-9a-f]{12,}(?:-\d+)?|eyJ[\w-]{12,}\.[\w.-]+|gh[pousr]_\w{12,})")
_USERINFO = re.compile(r"(?<=://)[^/\s\"']+(?=@)")
_NAMES = r"api[-_]?key|secret|passw|credential|(?:access|auth|bearer)[-_]?token|authorization|cookie"
_SECRET_NAME = re.compile(rf"{_NAMES}|^token$", re.IGNORECASE)
_QUOTED = r"(\"[^\"]*\"?|'[^']*'?|[^\s,}]+)"
_NAMED = re.compile(rf"((?:{_NAMES}|\bkey|\btoken)\w*[\"']?\s*:\s+)(?!\$){_QUOTED}", re.IGNORECASE)
_VARIABLES = re.compile(r"(?:\$\{[^}]*\})+")


def is_secret(path: Path, text: str = "") -> bool:
    """True where the value at this path is, or may be, a secret. A text of nothing but variables is none."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    if not path or _VARIABLES.fullmatch(text):
        return False
    if str(path[-1]).endswith(("_file", "_url")):
        return False
    if path[-1] == "proxy":
        return "@" in text
    headers = len(path) > 1 and path[-2] == "headers"
    keys = path[0] == "keys" and path[-1] not in ("name", "models")  # whatever else is written there
    return headers or keys or _SECRET_NAME.search(str(path[-1])) is not None


def looks_secret(text: str) -> bool:
    """True for the forms that well-known vendors' keys have, wherever they stand."""
    return _KNOWN.search(text) is not None


def masked(text: str) -> str:
    """The text, what looks like a secret in it replaced by as many stars."""
    return _USERINFO.sub(_stars, _KNOWN.sub(_stars, text))


def masked_by_name(text: str) -> str:
    """`masked`, and without what follows a name such as api_key: for lines that could not be read as YAML."""
    return _NAMED.sub(lambda found: found[1] + "*" * len(found[2]), masked(text))


def hide(lines: list[str], spans: Iterable[Span]) -> list[str]:
    """The lines, masked, with nothing to read in these places. Columns stay as they are."""
    lines = [masked(line) for line in lines]
    for span in spans:
        for number in range(span.line, min(span.end_line, len(lines)) + 1):
            line = lines[number - 1]
            start = span.column - 1 if number == span.line else 0
            end = span.end_column - 1 if number == span.end_line else len(line)
            lines[number - 1] = line[:start] + "*" * (end - start) + line[end:]
    return lines


def _stars(found: re.Match[str]) -> str:
    return "*" * len(found[0])
