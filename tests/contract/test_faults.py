"""What the fakes can do wrong, the cases notice; what is odd but allowed, no case complains about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.contract import faults
from dragoman.contract.corpus import load_cases
from dragoman.contract.fakes import BEHAVIOURS
from dragoman.contract.faults import FAULTS, HARMLESS, ORDINARY, Fault, Row
from dragoman.contract.model import DIALECTS
from dragoman.contract.reports.faults import as_json, as_markdown


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_fault_is_noticed_and_nothing_that_is_allowed(dialect: str) -> None:
    rows = await faults.table([dialect], first=True)
    assert [row.fault.name for row in rows if row.missed] == []
    assert [(row.fault.name, row.cases) for row in rows if row.fault.harmless(dialect) and row.cases] == []
    assert all(row.asked > 5 for row in rows)


def test_every_behaviour_is_judged() -> None:
    assert {fault.name for fault in FAULTS} | ORDINARY == set(BEHAVIOURS)
    assert set(HARMLESS) == set(DIALECTS)
    known = {fault.name: fault for fault in FAULTS}
    for dialect, reasons in HARMLESS.items():
        for name, reason in reasons.items():
            assert reason and dialect in known[name].dialects, (dialect, name)


async def test_all_cases_that_notice_are_told() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "missing-id")
    cases = await faults.baseline("openai", fault.baseline, load_cases())
    found = await faults.noticed("openai", fault, cases)
    assert {"chat/text/plain", "chat/stream/plain", "chat/text/time-and-id"} <= set(found)
    assert len(found) < len(cases)
    lost = next(fault for fault in FAULTS if fault.name == "status-404")
    assert len(await faults.noticed("openai", lost, cases[:20])) > 1


def test_the_table() -> None:
    fault = Fault("cut", "breaks off", "text", ("openai",))
    rows = [Row(fault, "openai", ("a/b", "a/c", "a/d", "a/e"), 9), Row(fault, "mindie", (), 8)]
    text = as_markdown(rows)
    assert "| `cut` | breaks off | openai | `a/b`, `a/c`, `a/d`, and 1 more (of 9) |" in text
    assert "| `cut` | breaks off | mindie | **nothing** |" in text
    told = json.loads(as_json(rows))
    assert [(row["dialect"], len(row["cases"]), row["allowed"]) for row in told] == [
        ("openai", 4, None),
        ("mindie", 0, None),
    ]


async def test_a_fault_that_nothing_notices_is_missed(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "protocol: chat\nsource: none\ncases:\n- {id: chat/one/x, title: x, level: MUST, max_tokens: 9, steps: "
        "[{request: {body: {messages: [{role: user, content: x}]}}, expect: {status: 200}}]}\n",
        "utf-8",
    )
    rows = await faults.table(["openai"], load_cases(tmp_path), first=True)
    by_name = {row.fault.name: row for row in rows}
    assert by_name["missing-id"].missed
    assert by_name["status-500"].cases == ("chat/one/x",)
