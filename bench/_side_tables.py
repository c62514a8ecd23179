"""Writes what `side_by_side.py` has measured, as tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from _cases import CASES, Case
from _goals import find_added, judge_goals
from _rows import Row, compare_rows

__all__ = [
    "Cell",
    "Table",
    "describe_case",
    "tabulate_case",
    "tabulate_figures",
    "tabulate_goals",
    "write_cell",
    "write_report",
    "write_table",
]

Rows = Mapping[str, Row]
Cell = float | str | None
Table = tuple[Sequence[str], Iterable[Sequence[Cell]]]
LIMIT = 0.9  # of a core
FIGURES = {"start_s": "start s", "idle_mb": "idle MB", "after_mb": "after MB", "growth_percent": "growth %"}


def write_report(rows: Rows, document: Mapping[str, Any]) -> str:
    """Write all tables, each with a heading."""
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    machine = f"Python {document['python']}, {document['cores']} cores, {versions}"
    parts = [
        f"`{document['command']}`; {document['seconds']:g} s for each measurement; {machine}.",
        f"### Goals\n\n{write_table(*tabulate_goals(rows))}",
        f"### Processor time, in µs and in multiples of nginx's\n\n{write_table(*tabulate_sums(rows))}",
    ]
    for name in _list_measured(rows):
        parts.append(f"### {describe_case(CASES[name])}\n\n{write_table(*tabulate_case(rows, name))}")
    parts.append(f"### Start and memory\n\n{write_table(*tabulate_figures(rows))}")
    if limited := list(_list_limited(rows)):
        parts.append(f"Limited by the provider or the load generator, not by the proxy: {', '.join(limited)}.")
    parts += [f"{row.name}: {row.note}" for row in rows.values() if row.note]
    return "\n\n".join(parts) + "\n"


def _list_measured(rows: Rows) -> list[str]:
    return [name for name in CASES if any(row.results[name] for row in rows.values())]


def _list_limited(rows: Rows) -> Iterator[str]:
    """Where the provider or the load generator used most of a core, and the proxy could have done more."""
    for row in rows.values():
        for name in _list_measured({row.name: row}):
            busy = (row.median(name, "provider_busy"), row.median(name, "load_busy"))
            if max(share or 0.0 for share in busy) > LIMIT:
                yield f"{row.name} ({CASES[name].title})"


def describe_case(case: Case) -> str:
    loop = "open loop" if case.rate else "closed loop"
    return f"{case.title}, {case.connections} connections, {loop}"


def tabulate_goals(rows: Rows) -> Table:
    return ["", "measured", "must", "aim", "unit", ""], [
        [one.goal.what, one.value, f"{one.goal.must:g}", f"{one.goal.aim:g}", one.goal.unit, one.verdict]
        for one in judge_goals(rows)
    ]


def tabulate_sums(rows: Rows) -> Table:
    """A row for each target, a column for each case."""
    names = _list_measured(rows)
    measured = [row for row in rows.values() if any(row.median(name, "cpu_us") for name in names)]
    return ["", *(CASES[name].title for name in names)], [
        [row.name, *(_write_cost(rows, row, name) for name in names)] for row in measured
    ]


def _write_cost(rows: Rows, row: Row, name: str) -> Cell:
    cost, ratio = row.median(name, "cpu_us"), compare_rows(row, rows["nginx"], name) if "nginx" in rows else None
    return (
        None if cost is None else write_cell(cost) if ratio is None else f"{write_cell(cost)} ({write_cell(ratio)} x)"
    )


def tabulate_case(rows: Rows, name: str) -> Table:
    """A row for each target, a column for each figure of a case."""
    case = CASES[name]
    head = ["", f"CPU µs/{case.unit}", "x nginx", "from", "to", f"{case.unit}s/s", "p50 ms", "p99 ms"]
    if case.is_stream:
        head += ["first token p50 ms", "delay p50 µs", "delay p99 µs"]
    if case.rate:
        head += ["p50 + ms", "p99 + ms"]
    return head, [_fill_row(rows, key, name, case) for key, row in rows.items() if row.results[name]]


def _fill_row(rows: Rows, key: str, name: str, case: Case) -> list[Cell]:
    row, nginx = rows[key], rows.get("nginx")
    ratio = compare_rows(row, nginx, name) if nginx else None
    costs = [one["cpu_us"] for one in row.results[name] if one["cpu_us"]]
    cells: list[Cell] = [row.name, row.median(name, "cpu_us"), ratio]
    cells += [min(costs, default=None), max(costs, default=None)]
    shown = ["per_second", "latency_ms_p50", "latency_ms_p99"]
    if case.is_stream:
        shown += ["first_token_ms_p50", "delay_us_p50", "delay_us_p99"]
    cells += [row.median(name, one) for one in shown]
    if case.rate:
        cells += [find_added(rows, key, one) for one in ("latency_ms_p50", "latency_ms_p99")]
    return cells


def tabulate_figures(rows: Rows) -> Table:
    def fill(row: Row) -> list[Cell]:
        return [row.name, *(statistics.median(row.figures[key]) if key in row.figures else None for key in FIGURES)]

    return ["", *FIGURES.values()], [fill(row) for row in rows.values() if row.figures]


def write_table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write a table in Markdown, whose columns are aligned."""
    lines = [list(head), *([write_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = [f"{'-' * (width + 1)}{':' if at else '-'}" for at, width in enumerate(widths)]
    first, *rest = (" | ".join(_align_cells(line, widths)) for line in lines)
    return "\n".join([f"| {first} |", f"|{'|'.join(rule)}|", *(f"| {line} |" for line in rest)])


def _align_cells(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for at, (cell, width) in enumerate(zip(line, widths, strict=True)):
        yield cell.rjust(width) if at else cell.ljust(width)


def write_cell(cell: Cell) -> str:
    if not isinstance(cell, float):
        return "–" if cell is None else str(cell)
    digits = 0 if abs(cell) >= 100 else 1 if abs(cell) >= 10 else 2
    return f"{cell:,.{digits}f}"
