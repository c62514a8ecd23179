"""Names of models: which configured model serves a requested name, and what the upstream calls it.

A configured model is a name, or a pattern in which `*` matches any number of characters. An exact name wins over
patterns. Among patterns the most specific wins: the one with the longest text before its first `*`, then the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from .models import TargetChoice
from .values import is_model_name

__all__ = ["find_common_name", "match", "matches", "upstream_name"]


def matches(pattern: str, name: str) -> bool:
    """True if the pattern, or plain name, covers the name."""
    return fnmatchcase(name, pattern)  # patterns hold none of fnmatch's other wildcards


def match(models: Mapping[str, object], name: str) -> str | None:
    """The key in `models` that serves the name, or None."""
    if not is_model_name(name):
        return None
    if name in models:
        return name
    candidates = [key for key in models.keys() if "*" in key and matches(key, name)]  # noqa: SIM118 (a str has no keys)
    return max(candidates, key=_specificity, default=None)


def find_common_name(one: str, other: str) -> str | None:
    """A name that both patterns match, or None: the longer of both beginnings and ends, and what is between stars."""
    (head, *_, tail), (other_head, *_, other_tail) = one.split("*"), other.split("*")
    middle = "".join(piece for pattern in (one, other) for piece in pattern.split("*")[1:-1])
    name = f"{max(head, other_head, key=len)}{middle}{max(tail, other_tail, key=len)}"
    return name if matches(one, name) and matches(other, name) else None


def upstream_name(pattern: str, target: TargetChoice, client_name: str) -> str:
    """What the upstream calls the model.

    `pattern` is the key that `match` returned for `client_name`. A target's `model` wins unless it is unset or `*`.
    Otherwise the upstream gets a plain model's own name, or, for a pattern, the client's name without `strip`.
    """
    if target.model and target.model != "*":
        return target.model
    if "*" not in pattern:
        return pattern
    return client_name.removeprefix(target.strip or "")


def _specificity(pattern: str) -> tuple[int, int]:
    return pattern.index("*"), len(pattern)
