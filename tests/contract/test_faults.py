"""The cases detect every fault of the fakes, and complain about no allowed behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.contract import faults
from dragoman.contract.case_files import load_cases
from dragoman.contract.fakes import BEHAVIOURS
from dragoman.contract.faults import CORRECT_BEHAVIOURS, FAULTS, HARMLESS
from dragoman.contract.model import DIALECTS

EVERY_DIALECT = ["openai", *(pytest.param(name, marks=pytest.mark.heavy) for name in DIALECTS if name != "openai")]


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
async def test_cases_detect_every_fault_and_nothing_allowed(dialect: str) -> None:
    rows = await faults.build_fault_table([dialect], first=True)
    assert [row.fault.name for row in rows if row.is_missed] == []
    assert [(row.fault.name, row.cases) for row in rows if row.fault.harmless_reason(dialect) and row.cases] == []
    assert all(row.asked > 5 for row in rows)


def test_every_behaviour_is_classified() -> None:
    assert {fault.name for fault in FAULTS} | CORRECT_BEHAVIOURS == set(BEHAVIOURS)
    assert set(HARMLESS) == set(DIALECTS)
    known = {fault.name: fault for fault in FAULTS}
    for dialect, reasons in HARMLESS.items():
        for name, reason in reasons.items():
            assert reason and dialect in known[name].dialects, (dialect, name)


async def test_all_detecting_cases_are_found() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "missing-id")
    cases = await faults.find_baseline_cases("openai", fault.baseline, load_cases())
    found = await faults.find_detecting_cases("openai", fault, cases)
    assert {"chat/text/plain", "chat/stream/plain", "chat/text/time-and-id"} <= set(found)
    assert len(found) < len(cases)
    lost = next(fault for fault in FAULTS if fault.name == "status-404")
    assert len(await faults.find_detecting_cases("openai", lost, cases[:20])) > 1


async def test_undetected_fault_is_missed(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "protocol: chat\nsource: none\ncases:\n- {id: chat/one/x, title: x, level: MUST, max_tokens: 9, steps: "
        "[{request: {body: {messages: [{role: user, content: x}]}}, expect: {status: 200}}]}\n",
        "utf-8",
    )
    rows = await faults.build_fault_table(["openai"], load_cases(tmp_path), first=True)
    by_name = {row.fault.name: row for row in rows}
    assert by_name["missing-id"].is_missed
    assert by_name["status-500"].cases == ("chat/one/x",)
