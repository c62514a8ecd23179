"""Which configured model serves the name that a client asks for, and what the upstream calls it.

A configured model is a name, or a pattern with `*` for any characters, none included. The exact name comes first, then
the most specific pattern: the one with the longest text before its first `*`, then the longest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from .models import TargetChoice
from .values import is_name

__all__ = ["match", "matches", "upstream_name"]


def matches(pattern: str, name: str) -> bool:
    """True where the pattern, or plain name, covers the name."""
    return fnmatchcase(name, pattern)  # patterns hold none of fnmatch's other wildcards


def match(models: Mapping[str, object], name: str) -> str | None:
    """The key in `models` that serves the name, or None."""
    if not is_name(name):
        return None
    if name in models:
        return name
    fitting = [key for key in models.keys() if "*" in key and matches(key, name)]  # noqa: SIM118 (a str has no keys)
    return max(fitting, key=_specificity, default=None)


def upstream_name(pattern: str, target: TargetChoice, client_name: str) -> str:
    """What the upstream calls the model.

    `pattern` is the key that `match` found for `client_name`. A target's `model` is the answer if it is set to anything
    but `*`. Without it, a plain model passes its own name on, and a wildcard the client's name, less `strip`.
    """
    if target.model and target.model != "*":
        return target.model
    if "*" not in pattern:
        return pattern
    return client_name.removeprefix(target.strip or "")


def _specificity(pattern: str) -> tuple[int, int]:
    return pattern.index("*"), len(pattern)
