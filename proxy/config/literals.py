"""Warnings about secrets that are written in the file itself."""

from __future__ import annotations

import re

from dragoman.adapters.paths import Path

from .document import Document
from .masks import is_secret, looks_secret

__all__ = ["warn_of_literals"]

_LONG = 16  # characters; a shorter literal is probably not a real secret


def warn_of_literals(document: Document) -> None:
    """Warn of literal secrets. Call this before variables are substituted."""
    for path, _, text in document.list_texts():
        proxy = path[-1:] == ("proxy",) and "${" in text
        literal = is_secret(path, text) and len(text) >= _LONG and "headers" not in path and not proxy
        if literal or looks_secret(text):
            message = "the file contains a secret, which everyone who can read the file can see"
            hint = (
                f'put it into the environment and write "${{{_name_variable(path)}}}", or "${{file:/run/secrets/...}}"'
            )
            document.add(path, "literal-secret", message, hint=hint, severity="warning")


def _name_variable(path: Path) -> str:
    """A name for the variable to write instead; it contains the provider's name if the secret is a provider's."""
    if path[0] == "keys":
        return "DRAGOMAN_KEY"
    named = path[0] == "providers" and len(path) > 2 and not looks_secret(str(path[1]))
    what = path[-1] if path[-1] in ("client_secret", "proxy") else "API_KEY"
    return re.sub(r"\W", "_", f"{path[1]}_{what}").upper() if named else "API_KEY"
