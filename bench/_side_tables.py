"""Prints what `side_by_side.py` has measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from _cases import CASES, Case
from _goals import find_added, judge_goals
from _rows import Row, compare_rows

__all__ = ["print_report", "write_table"]

Rows = Mapping[str, Row]
Cell = float | str | None


def print_report(rows: Rows, document: Mapping[str, Any]) -> None:
    for name, case in CASES.items():
        if any(row.results[name] for row in rows.values()):
            print(f"\n{case.title}, {case.connections} connections{_describe_loop(case)}")
            print(write_table(*_tabulate_case(rows, name, case)))
    print("\nprocesses")
    print(write_table(*_tabulate_figures(rows)))
    print("\ngoals")
    print(write_table(*_tabulate_goals(rows)))
    for row in rows.values():
        if row.note:
            print(f"\n{row.name}: {row.note}")


def _describe_loop(case: Case) -> str:
    return ", open loop" if case.rate else ", closed loop"


def _tabulate_case(rows: Rows, name: str, case: Case) -> tuple[list[str], Iterator[list[Cell]]]:
    """The columns and the rows of the table of a case."""
    head = ["", f"CPU µs/{case.unit}", "x nginx", "from", "to", f"{case.unit}s/s", "p50 ms", "p99 ms"]
    if case.is_stream:
        head += ["first token p50 ms", "delay p50 µs", "delay p99 µs"]
    if case.rate:
        head += ["p50 + ms", "p99 + ms"]
    return head, (_fill_row(rows, key, name, case) for key, row in rows.items() if row.results[name])


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


def _tabulate_figures(rows: Rows) -> tuple[list[str], Iterator[list[Cell]]]:
    keys = {"start_s": "start s", "idle_mb": "idle MB", "after_mb": "after MB", "growth_percent": "growth %"}

    def fill(row: Row) -> list[Cell]:
        return [row.name, *(statistics.median(row.figures[key]) if key in row.figures else None for key in keys)]

    return ["", *keys.values()], (fill(row) for row in rows.values() if row.figures)


def _tabulate_goals(rows: Rows) -> tuple[list[str], Iterator[list[Cell]]]:
    head = ["", "measured", "must", "aim", "unit", ""]
    return head, (
        [one.goal.what, one.value, f"{one.goal.must:g}", f"{one.goal.aim:g}", one.goal.unit, one.verdict]
        for one in judge_goals(rows)
    )


def write_table(head: Sequence[str], rows: Iterator[list[Cell]]) -> str:
    """Write a table in Markdown, whose columns are aligned."""
    lines = [list(head), *([_write_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = [f"{'-' * (width + 1)}{':' if at else '-'}" for at, width in enumerate(widths)]
    first, *rest = (" | ".join(map(_align_cell, range(len(line)), line, widths)) for line in lines)
    return "\n".join([f"| {first} |", f"|{'|'.join(rule)}|", *(f"| {line} |" for line in rest)])


def _align_cell(at: int, cell: str, width: int) -> str:
    return cell.rjust(width) if at else cell.ljust(width)


def _write_cell(cell: Cell) -> str:
    if not isinstance(cell, float):
        return "–" if cell is None else str(cell)
    digits = 0 if abs(cell) >= 100 else 1 if abs(cell) >= 10 else 2
    return f"{cell:,.{digits}f}"
