"""Tables of `contract_matrix.py`, made from the reports: sums by area, and what is found most often."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["causes", "cell", "summary"]

Json = dict[str, Any]

_MOST, _LEAST, _LONGEST = 12, 2, 110
_SAME = (
    (re.compile(r"event \d+: "), "event: "),
    (re.compile(r"\[\d+\]"), "[n]"),
    (re.compile(r"\b\d{4,}\S*"), "…"),
    (re.compile(r"sk-\S+|chatcmpl\S*|resp_\S+"), "…"),
)
"""What differs between two sentences that say the same."""


def cell(text: str, most: int = _LONGEST) -> str:
    """The text as it can stand in a table of Markdown."""
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= most else f"{text[:most]}…"


def summary(reports: Sequence[Json]) -> str:
    """Cases passed of those asked, by area: a row for each target, split by which side is looked at."""
    areas = sorted({_area(case["id"]) for report in reports for case in report["cases"]})
    lines = ["| | " + " | ".join(areas) + " | all | failed | warned |", "|---|" + "---:|" * (len(areas) + 3)]
    for report in reports:
        cells = [_passed([case for case in report["cases"] if _area(case["id"]) == area]) for area in areas]
        failed = report["counts"]["fail"] + report["counts"]["error"]
        cells += [_passed(report["cases"]), str(failed), str(report["counts"]["warn"])]
        lines.append(f"| {report['target']['name']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _area(case: str) -> str:
    protocol, part = case.split("/")[:2]
    return f"{protocol}, driven" if part.startswith("proxy-") else protocol


def _passed(cases: Sequence[Json]) -> str:
    asked = [case for case in cases if case["verdict"] != "skip"]
    return f"{sum(case['verdict'] == 'pass' for case in asked)} of {len(asked)}" if asked else "–"


def causes(reports: Sequence[Json]) -> str:
    """For each gateway the sentences that most cases fail with, all its providers together."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for report in reports:
        gateway = report["target"]["name"].partition(" > ")[0]
        for case in report["cases"]:
            if case["verdict"] in ("fail", "error"):
                found[gateway][_cause(case)].add(case["id"])
    parts = [_table(gateway, said) for gateway, said in found.items()]
    return "\n".join(parts) or "No case fails anywhere.\n"


def _cause(case: Json) -> str:
    """The first problem, without what differs from case to case."""
    reason = str(case["reason"]).partition("; ")[0]
    head, colon, status = reason.partition("status: ")
    if colon and not head:
        reason = f"status: {status.partition(':')[0]}"
    for pattern, put in _SAME:
        reason = pattern.sub(put, reason)
    return reason


def _table(gateway: str, said: Mapping[str, set[str]]) -> str:
    ranked = sorted(said.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [(cause, ids) for cause, ids in ranked if len(ids) >= _LEAST][:_MOST]
    lines = [f"### {gateway}", "", "| cases | what is wrong | for example |", "|---:|---|---|"]
    lines += [f"| {len(ids)} | {cell(cause)} | `{min(ids)}` |" for cause, ids in shown]
    left = len(ranked) - len(shown)
    return "\n".join([*lines, "", f"And {left} causes more, of {len(ranked)}.", ""])
