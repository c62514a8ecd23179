"""The cause of a failed case: its reason without what differs from case to case, so that cases can be grouped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .json_types import JsonObject

__all__ = ["find_cause", "group_by_cause"]

_STATUS = re.compile(r"status: (\d+), expected [^:]*")
_REPLACED = (
    (re.compile(r"\bevent \d+: "), ""),
    (re.compile(r"\[\d+\]"), "[]"),
    (re.compile(r"'[^']{40,}'"), "'…'"),
    (re.compile(r"\b\d{2,}(?:\.\d+)?\b"), "N"),
)
_MOST_CHARACTERS = 160
_GROUPED = ("fail", "error", "warn")


def find_cause(verdict: str, reason: str) -> str:
    """Find the cause of a verdict that is a fail, an error or a warning: the first problem of its reason, without
    positions and numbers. Empty for other verdicts."""
    if verdict not in _GROUPED:
        return ""
    status = _STATUS.match(reason)
    if status is not None:
        return status[0]
    cause = reason.partition("; ")[0]
    for pattern, replacement in _REPLACED:
        cause = pattern.sub(replacement, cause)
    return cause if len(cause) <= _MOST_CHARACTERS else f"{cause[:_MOST_CHARACTERS]}…"


def group_by_cause(cases: Sequence[JsonObject], verdicts: Sequence[str] = ("fail", "error")) -> list[JsonObject]:
    """Group the cases of a report that have one of the verdicts: `cause`, `verdict` and the ids in `cases`; the largest
    group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        if case["verdict"] in verdicts:
            cause = case.get("cause") or find_cause(case["verdict"], case["reason"])
            groups.setdefault((case["verdict"], cause), []).append(case["id"])
    found = [{"cause": cause, "verdict": verdict, "cases": ids} for (verdict, cause), ids in groups.items()]
    return sorted(found, key=lambda group: -len(group["cases"]))
