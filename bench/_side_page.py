"""Writes the page of `side_by_side.py`: goals, charts and tables, in one file without other resources."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from _cases import CASES
from _charts import Dot, draw_dots
from _goals import GOALS
from _rows import Row, list_ratios
from _side_tables import describe_case, tabulate_case, tabulate_figures, tabulate_goals, write_cell

__all__ = ["write_page"]

STYLE = """\
:root { color-scheme: light dark; --ink: #1d2733; --dim: #667; --grid: #dde; --dot: #2563ab; --must: #c2410c;
  --aim: #15803d; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ee; --dim: #99a; --grid: #334; --dot: #7ab0f5;
  --must: #fb923c; --aim: #4ade80; --paper: #14171c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; display: block;
  overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--ink); } .label { text-anchor: end; } .tick { text-anchor: middle; }
svg .tick, svg .unit { fill: var(--dim); } .unit { text-anchor: end; }
.grid { stroke: var(--grid); } .range { stroke: var(--dot); stroke-width: 2; opacity: .5; }
circle { fill: var(--dot); } .left { text-anchor: end; }
.must { stroke: var(--must); stroke-width: 3; } .aim { stroke: var(--aim); stroke-width: 3; }
.dim { color: var(--dim); } .key-must { color: var(--must); } .key-aim { color: var(--aim); }
"""
KEY = (
    "A dot is the median of the rounds, the line its range; "
    '<b class="key-must">▌</b> must not, <b class="key-aim">▌</b> shall not be exceeded.'
)
Rows = Mapping[str, Row]


def write_page(rows: Rows, document: Mapping[str, Any]) -> str:
    """Write the page as HTML."""
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    machine = f"Python {document['python']}, {document['cores']} cores, load {document['load']}, {versions}"
    parts = [
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
        f"<title>Side by side</title><style>{STYLE}</style></head><body>",
        "<h1>Side by side</h1>",
        f"<p><code>{escape(document['command'])}</code><br><span class='dim'>{escape(machine)}</span></p>",
        *_write_goals(rows),
        *(
            part
            for name in CASES
            if any(row.results[name] for row in rows.values())
            for part in _write_case(rows, name)
        ),
        "<h2>Start and memory</h2>",
        _write_table(*tabulate_figures(rows)),
        *(f"<p>{escape(row.name)}: {escape(row.note)}</p>" for row in rows.values() if row.note),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _write_goals(rows: Rows) -> Iterator[str]:
    yield "<h2>Goals</h2>"
    yield _write_table(*tabulate_goals(rows))
    yield f"<p class='dim'>{KEY}</p>"


def _write_case(rows: Rows, name: str) -> Iterator[str]:
    case = CASES[name]
    yield f"<h2>{escape(describe_case(case))}</h2>"
    if dots := list(_list_ratio_dots(rows, name)):
        yield f"<h3>Processor time of {'an event' if case.is_stream else 'a request'}</h3>"
        yield draw_dots(dots, "multiples of nginx's in the same round")
    unit, keys = (
        ("µs", ("delay_us_p50", "delay_us_p99")) if case.is_stream else ("ms", ("latency_ms_p50", "latency_ms_p99"))
    )
    if dots := list(_list_time_dots(rows, name, keys)):
        yield f"<h3>{'Delay of an event' if case.is_stream else 'Time to the answer'}: median and 99th percentile</h3>"
        yield draw_dots(dots, unit)
    yield _write_table(*tabulate_case(rows, name))


def _list_ratio_dots(rows: Rows, name: str) -> Iterator[Dot]:
    goals = {goal.target: goal for goal in GOALS if goal.case == name}
    for key, row in rows.items():
        if ratios := list_ratios(row, rows["nginx"], name) if "nginx" in rows else []:
            goal = goals.get(key)
            marks = (goal.must, goal.aim) if goal else (None, None)
            yield Dot(row.name, statistics.median(ratios), min(ratios), max(ratios), *marks)


def _list_time_dots(rows: Rows, name: str, keys: Sequence[str]) -> Iterator[Dot]:
    for row in rows.values():
        for key in keys:
            if found := [one[key] for one in row.results[name] if one[key]]:
                yield Dot(row.name, statistics.median(found), min(found), max(found), is_left=key == keys[0])


def _write_table(head: Sequence[str], rows: Iterable[Sequence[float | str | None]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    lines += (f"<tr>{''.join(f'<td>{escape(write_cell(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return "<table>\n" + "\n".join(lines) + "\n</table>"
