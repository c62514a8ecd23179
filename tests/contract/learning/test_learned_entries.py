"""Through dragoman with a learned entry, a fake fails at nothing that it does directly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.learning.entry import EntryNames, render_entry
from dragoman.contract.learning.findings import Findings
from dragoman.contract.runner import CaseRunner
from dragoman.contract.servers import ProxyServers
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from tests.contract.learning.learned import learn_fake

ROOTS = {"mindie": "/mindie"}
"""Where dragoman serves a dialect whose paths another one has too."""
SERVED_OTHERWISE = {
    "databricks/actual": {"strict_fields"},
    "databricks/documented": {"strict_fields"},
    "anthropic/actual": {"strict_fields"},
    "mindie/documented": {"tools"},
}
"""What dragoman does on purpose: unknown fields of its clients pass. MindIE's reference has no tools; the fake ignores
them, and dragoman refuses them."""
DONE = ("pass", "warn")
FAILED = ("fail", "error")


def read_profile(findings: Findings) -> str:
    return findings.get("profile") or "actual"


async def run_suite(base_url: str, findings: Findings) -> Mapping[str, str]:
    """The verdict and the reason of each case of the dialect."""
    without = frozenset(SERVED_OTHERWISE.get(f"{findings.dialect}/{read_profile(findings)}", ()))
    target = Target(base_url, findings.dialect, findings.model, profile=read_profile(findings), without=without)
    transport = HttpTransport(20)
    cases = [case for case in load_cases() if case.dialect == findings.dialect and not case.upstreams]
    try:
        results = await CaseRunner(target, transport).run_cases(cases)
    finally:
        await transport.close()
    return {one.case.id: f"{one.verdict}: {one.reason}" for one in results}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("dialect", "profile"), [(name, profile) for name in DIALECTS for profile in load_dialect(name).profiles]
)
async def test_a_learned_entry_adds_no_failure(dialect: str, profile: str, tmp_path: Path) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        findings = await learn_fake(fake)
        directly = await run_suite(findings.base_url, findings)
        with ProxyServers(tmp_path) as start:
            served = f"server: {{profiles: {{{dialect}: {read_profile(findings)}}}}}\n"
            entry = render_entry(findings, EntryNames("p"), "dragoman learn")
            origin = await asyncio.to_thread(start, served + entry)
            root = ROOTS.get(dialect, load_dialect(dialect).root)
            through = await run_suite(origin + root, findings)
    added = {
        id_: verdict
        for id_, verdict in through.items()
        if verdict.startswith(FAILED) and directly[id_].startswith(DONE)
    }
    assert added == {}
    assert sum(verdict.startswith(DONE) for verdict in through.values()) > 20
