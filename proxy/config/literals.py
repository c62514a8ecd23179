"""Warnings about literal secrets: everyone who can read the file can read them."""

from __future__ import annotations

import re

from dragoman.adapters.paths import Path

from .document import Document
from .masks import is_secret, looks_secret

__all__ = ["warn_about_literal_secrets"]

_MIN_LENGTH = 16  # a shorter text counts as a placeholder, not as a real secret


def warn_about_literal_secrets(document: Document) -> None:
    """Warn about secrets that the file contains literally. Call this before variables are substituted."""
    for path, _, text in document.list_texts():
        proxy = path[-1:] == ("proxy",) and "${" in text
        literal = is_secret(path, text) and len(text) >= _MIN_LENGTH and "headers" not in path and not proxy
        if literal or looks_secret(text):
            message = "the file contains a secret: everyone who can read the file can read it"
            name = _suggest_variable(path)
            hint = f'set an environment variable and write "${{{name}}}", or write "${{file:/run/secrets/...}}"'
            document.add_problem(path, "literal-secret", message, hint=hint, severity="warning")


def _suggest_variable(path: Path) -> str:
    """A name for the variable, with the name of the provider if the secret belongs to one."""
    if path[0] == "keys":
        return "DRAGOMAN_KEY"
    named = path[0] == "providers" and len(path) > 2 and not looks_secret(str(path[1]))
    what = path[-1] if path[-1] in ("client_secret", "proxy") else "API_KEY"
    return re.sub(r"\W", "_", f"{path[1]}_{what}").upper() if named else "API_KEY"
