"""The fault table as Markdown and JSON."""

from __future__ import annotations

import json

from dragoman.contract.faults import Fault, FaultRow
from dragoman.contract.reports.faults import render_fault_json, render_fault_markdown


def test_table_has_the_detecting_cases_of_each_fault() -> None:
    fault = Fault("cut", "breaks off", "text", ("openai",))
    rows = [FaultRow(fault, "openai", ("a/b", "a/c", "a/d", "a/e"), 9), FaultRow(fault, "mindie", (), 8)]
    text = render_fault_markdown(rows)
    assert "| `cut` | breaks off | openai | `a/b`, `a/c`, `a/d`, and 1 more (of 9) |" in text
    assert "| `cut` | breaks off | mindie | **nothing** |" in text
    rows_json = json.loads(render_fault_json(rows))
    assert [(row["dialect"], len(row["cases"]), row["allowed"]) for row in rows_json] == [
        ("openai", 4, None),
        ("mindie", 0, None),
    ]
