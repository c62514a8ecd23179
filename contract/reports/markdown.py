"""The Markdown report, for the summary of a CI job or a page of the docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman.contract.causes import group_by_cause
from dragoman.contract.json_types import JsonObject
from dragoman.contract.verdicts import VERDICTS

__all__ = ["render_markdown", "render_matrix"]

_MARKS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "inconclusive": "❔", "skip": "–", "error": "💥"}
_LEGEND = (
    "✅ pass; ⚠️ warn: only a recommendation is broken; ❌ fail: a requirement is broken; ❔ inconclusive: the model did"
    " not do its part; – skip; 💥 error: no complete reply."
)
_MOST_IDS = 3
_SHOWN = ("fail", "error", "warn", "inconclusive")


def render_markdown(report: JsonObject) -> str:
    """Render one target: the counts, the failures by cause, the counts by area, then every case that neither passed nor
    was skipped."""
    target, counts = report["target"], report["counts"]
    shown = [verdict for verdict in VERDICTS if counts[verdict]]
    lines = [
        f"## Contract: {_escape_cell(target['name'])} as {target['dialect']} ({target['profile']})",
        "",
        f"| cases | {' | '.join(shown)} |",
        "|---:|" + "---:|" * len(shown),
        f"| {len(report['cases'])} | {' | '.join(str(counts[verdict]) for verdict in shown)} |",
        "",
        _LEGEND,
        *([f"\n{_escape_cell(report['advice'])}."] if report.get("advice") else []),
        *_render_causes(report),
        "",
        *_render_areas(report),
    ]
    cases = [case for case in report["cases"] if case["verdict"] in _SHOWN]
    if cases:
        lines += ["", "| | case | level | reason | source |", "|---|---|---|---|---|"]
        lines += [_render_row(case) for case in cases]
    return "\n".join(lines) + "\n"


def _render_causes(report: JsonObject) -> list[str]:
    groups = group_by_cause(report["cases"])
    if not groups:
        return []
    lines = ["", "| failures | cause | cases |", "|---:|---|---|"]
    for group in groups:
        ids = [f"`{id_}`" for id_ in group["cases"][:_MOST_IDS]]
        more = f" and {len(group['cases']) - _MOST_IDS} more" if len(group["cases"]) > _MOST_IDS else ""
        lines.append(f"| {len(group['cases'])} | {_escape_cell(group['cause'])} | {', '.join(ids)}{more} |")
    return lines


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
    return "\n".join([_LEGEND, "", *lines]) + "\n"


def _count_run(report: JsonObject) -> int:
    return len(report["cases"]) - int(report["counts"]["skip"])


def _render_areas(report: JsonObject) -> list[str]:
    areas: dict[str, Counter[str]] = {}
    for case in report["cases"]:
        areas.setdefault("/".join(case["id"].split("/")[:2]), Counter())[case["verdict"]] += 1
    shown = [verdict for verdict in VERDICTS if report["counts"][verdict]]
    ran = {area: of for area, of in areas.items() if set(of) != {"skip"}}
    lines = [f"| area | {' | '.join(shown)} |", "|---|" + "---:|" * len(shown)]
    return lines + [f"| {area} | {' | '.join(str(of[verdict]) for verdict in shown)} |" for area, of in ran.items()]


def _render_row(case: JsonObject) -> str:
    mark = _MARKS[case["verdict"]]
    gap = f" (known: {case['expected']})" if case.get("expected") else ""
    reason, source = _escape_cell(case["reason"] + gap), _escape_cell(case["source"])
    return f"| {mark} | `{case['id']}` | {case['level']} | {reason} | {source} |"


def _escape_cell(text: str, most: int = 300) -> str:
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= most else f"{text[:most]}…"
