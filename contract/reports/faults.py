"""The fault table as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.contract.faults import FaultRow

__all__ = ["render_fault_json", "render_fault_markdown"]

_MOST_SHOWN = 3


def render_fault_json(rows: Sequence[FaultRow]) -> str:
    """Render a list of objects: fault, about, dialect, baseline, the cases that detect it, how many were asked, and why
    the behaviour is allowed, null if it is a fault."""
    found = [
        {
            "fault": row.fault.name,
            "about": row.fault.about,
            "dialect": row.dialect,
            "baseline": row.fault.baseline,
            "cases": list(row.cases),
            "asked": row.asked,
            "allowed": row.fault.harmless_reason(row.dialect) or None,
        }
        for row in rows
    ]
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def render_fault_markdown(rows: Sequence[FaultRow]) -> str:
    """Render a table with a row for each fault and dialect."""
    lines = ["| fault | description | dialect | detected by |", "| --- | --- | --- | --- |"]
    lines += [f"| `{row.fault.name}` | {row.fault.about} | {row.dialect} | {_describe_cases(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _describe_cases(row: FaultRow) -> str:
    if not row.cases:
        return row.fault.harmless_reason(row.dialect) or "**nothing**"
    shown = ", ".join(f"`{id_}`" for id_ in row.cases[:_MOST_SHOWN])
    more = f", and {len(row.cases) - _MOST_SHOWN} more" if len(row.cases) > _MOST_SHOWN else ""
    return f"{shown}{more} (of {row.asked})"
