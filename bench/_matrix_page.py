"""Writes the tables of the contract matrix from the reports: sums by area, and the most frequent failures."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["MARKS", "escape_cell", "write_causes", "write_summary"]

Json = dict[str, Any]

MARKS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "inconclusive": "❔", "skip": "–", "error": "💥"}
_MOST, _LEAST, _LONGEST = 12, 2, 110
_SAME = (
    (re.compile(r"event \d+: "), "event: "),
    (re.compile(r"\[\d+\]"), "[n]"),
    (re.compile(r"\b\d{4,}\S*"), "…"),
    (re.compile(r"sk-\S+|chatcmpl\S*|resp_\S+"), "…"),
)
"""Replaces the parts in which two sentences about the same failure differ."""


def escape_cell(text: str, most: int = _LONGEST) -> str:
    """Escape a text for a Markdown table, and cut it after `most` characters."""
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= most else f"{text[:most]}…"


def write_summary(reports: Sequence[Json]) -> str:
    """Write how many cases pass, by area, with a row for each target."""
    areas = sorted({_area(case["id"]) for report in reports for case in report["cases"]})
    lines = ["| | " + " | ".join(areas) + " | all | failed | warned |", "|---|" + "---:|" * (len(areas) + 3)]
    for report in reports:
        cells = [_count_passed([case for case in report["cases"] if _area(case["id"]) == area]) for area in areas]
        failed = report["counts"]["fail"] + report["counts"]["error"]
        cells += [_count_passed(report["cases"]), str(failed), str(report["counts"]["warn"])]
        lines.append(f"| {report['target']['name']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _area(case: str) -> str:
    protocol, part = case.split("/")[:2]
    if part == "quirks":
        return f"{protocol}, quirks"
    return f"{protocol}, driven" if part.startswith("proxy-") else protocol


def _count_passed(cases: Sequence[Json]) -> str:
    run = [case for case in cases if case["verdict"] != "skip"]
    return f"{sum(case['verdict'] == 'pass' for case in run)} of {len(run)}" if run else "–"


def write_causes(reports: Sequence[Json]) -> str:
    """Write the most frequent failures of each gateway, over all its providers."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for report in reports:
        gateway = report["target"]["name"].partition(" > ")[0]
        for case in report["cases"]:
            if case["verdict"] in ("fail", "error"):
                found[gateway][_cause(case)].add(case["id"])
    parts = [_table(gateway, causes) for gateway, causes in found.items()]
    return "\n".join(parts) or "No case fails anywhere.\n"


def _cause(case: Json) -> str:
    """The first problem of a case, without the parts that differ from case to case."""
    reason = str(case["reason"]).partition("; ")[0]
    head, colon, status = reason.partition("status: ")
    if colon and not head:
        reason = f"status: {status.partition(':')[0]}"
    for pattern, put in _SAME:
        reason = pattern.sub(put, reason)
    return reason


def _table(gateway: str, causes: Mapping[str, set[str]]) -> str:
    ranked = sorted(causes.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [(cause, ids) for cause, ids in ranked if len(ids) >= _LEAST][:_MOST]
    lines = [f"### {gateway}", "", "| cases | what is wrong | for example |", "|---:|---|---|"]
    lines += [f"| {len(ids)} | {escape_cell(cause)} | `{min(ids)}` |" for cause, ids in shown]
    left = len(ranked) - len(shown)
    return "\n".join([*lines, "", f"{left} of {len(ranked)} causes are not shown.", ""])
