"""The Markdown report, for the summary of a CI job or a page of the docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman.contract.json_types import JsonObject
from dragoman.contract.verdicts import VERDICTS

__all__ = ["render_markdown", "render_matrix"]

_MARKS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "inconclusive": "❔", "skip": "–", "error": "💥"}
_SHOWN = ("fail", "error", "warn", "inconclusive")


def render_markdown(report: JsonObject) -> str:
    """Render one target: the counts by area, then every case that neither passed nor was skipped."""
    target, counts = report["target"], report["counts"]
    totals = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    lines = [
        f"## Contract: {_escape_cell(target['name'])} as {target['dialect']} ({target['profile']})",
        "",
        f"{len(report['cases'])} cases: {', '.join(totals) or 'none'}.",
        "",
        *_render_areas(report),
    ]
    cases = [case for case in report["cases"] if case["verdict"] in _SHOWN]
    if cases:
        lines += ["", "| | case | level | reason | source |", "|---|---|---|---|---|"]
        lines += [_render_row(case) for case in cases]
    return "\n".join(lines) + "\n"


def render_matrix(reports: Sequence[JsonObject]) -> str:
    """Render several targets: a row for each case, a column for each target."""
    names = [report["target"]["name"] for report in reports]
    titles = {case["id"]: case["title"] for report in reports for case in report["cases"]}
    verdicts = [{case["id"]: case["verdict"] for case in report["cases"]} for report in reports]
    lines = [
        f"| case | {' | '.join(_escape_cell(name) for name in names)} | what must be true |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for id_ in sorted(titles):
        cells = " | ".join(_MARKS[of.get(id_, "skip")] for of in verdicts)
        lines.append(f"| `{id_}` | {cells} | {_escape_cell(titles[id_])} |")
    sums = [f"{report['counts']['pass']} of {_count_run(report)}" for report in reports]
    lines.append(f"| **passed** | {' | '.join(sums)} | |")
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in _MARKS.items())
    return "\n".join(lines) + f"\n\n{legend}\n"


def _count_run(report: JsonObject) -> int:
    return len(report["cases"]) - int(report["counts"]["skip"])


def _render_areas(report: JsonObject) -> list[str]:
    areas: dict[str, Counter[str]] = {}
    for case in report["cases"]:
        areas.setdefault("/".join(case["id"].split("/")[:2]), Counter())[case["verdict"]] += 1
    shown = [verdict for verdict in VERDICTS if report["counts"][verdict]]
    lines = [f"| area | {' | '.join(shown)} |", "|---|" + "---:|" * len(shown)]
    return lines + [f"| {area} | {' | '.join(str(of[verdict]) for verdict in shown)} |" for area, of in areas.items()]


def _render_row(case: JsonObject) -> str:
    mark = _MARKS[case["verdict"]]
    gap = f" (known: {case['expected']})" if case.get("expected") else ""
    reason, source = _escape_cell(case["reason"] + gap), _escape_cell(case["source"])
    return f"| {mark} | `{case['id']}` | {case['level']} | {reason} | {source} |"


def _escape_cell(text: str, most: int = 300) -> str:
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= most else f"{text[:most]}…"
