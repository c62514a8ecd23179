"""The fault table as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.contract.faults import Row

__all__ = ["as_json", "as_markdown"]

_SHOWN = 3


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects: fault, about, dialect, baseline, cases that notice it, asked, and allowed: why it is none."""
    found = [
        {
            "fault": row.fault.name,
            "about": row.fault.about,
            "dialect": row.dialect,
            "baseline": row.fault.baseline,
            "cases": list(row.cases),
            "asked": row.asked,
            "allowed": row.fault.harmless(row.dialect) or None,
        }
        for row in rows
    ]
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def as_markdown(rows: Sequence[Row]) -> str:
    lines = ["| fault | what it is | dialect | noticed by |", "| --- | --- | --- | --- |"]
    lines += [f"| `{row.fault.name}` | {row.fault.about} | {row.dialect} | {_told(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _told(row: Row) -> str:
    if not row.cases:
        return row.fault.harmless(row.dialect) or "**nothing**"
    shown = ", ".join(f"`{id_}`" for id_ in row.cases[:_SHOWN])
    more = f", and {len(row.cases) - _SHOWN} more" if len(row.cases) > _SHOWN else ""
    return f"{shown}{more} (of {row.asked})"
