"""Conversion of single values from LiteLLM's notation to dragoman's."""

from __future__ import annotations

import re

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.masks import is_secret
from dragoman.proxy.config.values import format_seconds

__all__ = ["convert_duration", "convert_text", "find_reference", "read_number"]

_REFERENCE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")


def find_reference(text: str) -> str | None:
    """The variable that `os.environ/NAME` names, else None."""
    found = _REFERENCE.fullmatch(text)
    return found[1] if found else None


def convert_text(document: Document, path: Path, variable: str = "") -> str | None:
    """The text at a path, with `os.environ/NAME` as `${NAME}`; None if there is no scalar.

    A literal secret is replaced by the variable named `variable`, and a warning is added to the document.
    """
    node = document.find(path)
    if node is None or node.value is None or isinstance(node.value, dict | list):
        return None
    text = str(node.value)
    if (name := find_reference(text)) is not None:
        return f"${{{name}}}"
    if variable and is_secret(("x", path[-1])) | (path[-1] == "master_key"):
        message = f"the secret is not copied; put it into the variable {variable}"
        document.add_problem(path, "literal-secret", message, severity="warning")
        return f"${{{variable}}}"
    return text.replace("${", "$${")


def read_number(document: Document, path: Path) -> float | None:
    """The number at a path if it is above 0, else None."""
    node = document.find(path)
    value = node.value if node is not None else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def convert_duration(document: Document, path: Path) -> str | None:
    """The seconds at a path as a duration such as `30s`; None if there is no number above 0."""
    seconds = read_number(document, path)
    return None if seconds is None else format_seconds(float(seconds))
