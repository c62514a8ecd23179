"""Masking of literal secrets, so that no message shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dragoman.adapters.paths import Path

from .problems import Span

__all__ = ["is_secret", "looks_secret", "mask_named_secrets", "mask_secrets", "mask_spans"]

_FORMS = (
    r"sk-[\w-]{12,}",  # OpenAI, Anthropic and others
    r"dapi[0-9a-f]{12,}(?:-\d+)?",  # Databricks
    r"eyJ[\w-]{12,}\.[\w.-]+",  # a JSON Web Token
    r"gh[pousr]_\w{12,}|github_pat_\w{12,}|glpat-[\w-]{12,}",
    r"AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abeoprs]-[\w-]{10,}",
    r"hf_[A-Za-z]{12,}|gsk_\w{12,}|xai-\w{12,}|nvapi-[\w-]{12,}|pplx-\w{12,}",
)
_KNOWN = re.compile(rf"(?:(?<![\w-])|(?<=\\[bfnrt]))(?:{'|'.join(_FORMS)})")
"""A key may follow an escape, such as a line feed in JSON text."""

_USERINFO = re.compile(r"(?<=://)[^/\s\"']+(?=@)")
_TOKENS = r"(?:access|auth|bearer|session|identity|ad)[-_]?token"
_NAMES = rf"api[-_]?key|secret|passw|credential|{_TOKENS}|authorization|cookie"
_SECRET_NAME = re.compile(rf"{_NAMES}|^token$", re.IGNORECASE)
_QUOTED = r"(\"[^\"]*\"?|'[^']*'?|[^\s,}]+)"
_NAMED = re.compile(rf"((?:{_NAMES}|\bkey|\btoken)\w*[\"']?\s*:\s+)(?!\$){_QUOTED}", re.IGNORECASE)
_PUBLIC = ("name", "models", "priority", "key_hash", "expires")
"""Keys of a client key's entry whose values are no secrets."""
_VARIABLES = re.compile(r"(?:\$\{[^}]*\})+")


def is_secret(path: Path, text: str = "") -> bool:
    """True if the value at this path is, or may be, a secret. A text that consists of variables is none."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    if not path or _VARIABLES.fullmatch(text):
        return False
    if str(path[-1]).endswith(("_file", "_url")):
        return False
    if path[-1] == "proxy":
        return "@" in text
    headers = len(path) > 1 and path[-2] == "headers"
    keys = path[0] == "keys" and path[-1] not in _PUBLIC and "metadata" not in path  # others may be misspelled
    return headers or keys or _SECRET_NAME.search(str(path[-1])) is not None


def looks_secret(text: str) -> bool:
    """True if the text contains a key in the form of a well-known vendor, at any path."""
    return _KNOWN.search(text) is not None


def mask_secrets(text: str) -> str:
    """The text, with what looks like a secret replaced by as many stars."""
    return _USERINFO.sub(_replace_by_stars, _KNOWN.sub(_replace_by_stars, text))


def mask_named_secrets(text: str) -> str:
    """Mask secrets, and any value after a name such as api_key. For lines that could not be parsed as YAML."""
    return _NAMED.sub(lambda match: match[1] + "*" * len(match[2]), mask_secrets(text))


def mask_spans(lines: list[str], spans: Iterable[Span]) -> list[str]:
    """The lines with secrets masked, and with stars in the spans. Columns do not change."""
    lines = [mask_secrets(line) for line in lines]
    for span in spans:
        for number in range(span.line, min(span.end_line, len(lines)) + 1):
            line = lines[number - 1]
            start = span.column - 1 if number == span.line else 0
            end = span.end_column - 1 if number == span.end_line else len(line)
            lines[number - 1] = line[:start] + "*" * (end - start) + line[end:]
    return lines


def _replace_by_stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])
