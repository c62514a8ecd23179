"""Single values: LiteLLM's as ours."""

from __future__ import annotations

import re

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.values import time_text

__all__ = ["duration", "number", "written"]

_REFERENCE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")


def written(document: Document, path: Path, variable: str = "") -> str | None:
    """The text at a path, `os.environ/NAME` as `${NAME}`; None for anything else.

    A secret that stands in the file is not carried over: `variable` takes its place, which is noted.
    """
    node = document.find(path)
    if node is None or node.value is None or isinstance(node.value, dict | list):
        return None
    text = str(node.value)
    if found := _REFERENCE.fullmatch(text):
        return f"${{{found[1]}}}"
    if variable and is_secret(("x", path[-1])) | (path[-1] == "master_key"):
        message = f"the secret stays behind: put it into the variable {variable}"
        document.add(path, "literal-secret", message, severity="warning")
        return f"${{{variable}}}"
    return text.replace("${", "$${")


def number(document: Document, path: Path) -> float | None:
    """The number at a path that is more than 0, or None."""
    node = document.find(path)
    value = node.value if node is not None else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def duration(document: Document, path: Path) -> str | None:
    """Seconds as a duration of ours."""
    seconds = number(document, path)
    return None if seconds is None else time_text(float(seconds))
