"""`dragoman learn` on a server, and the contract suite through dragoman with the entry that it writes.

What the server fails at through dragoman, it must fail at directly too: the entry says nothing wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.contract.case_files import BUILT_IN_CASES, load_cases
from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject
from dragoman.contract.learning.entry import EntryNames, render_entry
from dragoman.contract.learning.findings import Findings
from dragoman.contract.learning.learner import Learner
from dragoman.contract.pacing import Pacer
from dragoman.contract.servers import ProxyServers
from dragoman.contract.session import ReportFiles, Session, select_cases
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from dragoman.proxy.config.load import check_text

__all__ = ["OWN_ENGINE", "LearnedServer", "Report", "learn_own_engine", "learn_server"]

_TIMEOUT = 180.0  # seconds; some servers take a minute on a busy machine
OWN_ENGINE = "dragoman"
"""The name of dragoman's own engine among the servers to learn."""
_MINI = "dragoman-mini"
_FAILED = ("fail", "error")
_PASSED, _UNDECIDED = ("pass", "warn"), ("skip", "inconclusive")


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts of one run by the id of the case, and the reasons of the failures."""

    verdicts: Mapping[str, str]
    failures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LearnedServer:
    """What was learned, and the failures of the suite: directly, through dragoman, and those that are new there, each
    with its reason."""

    findings: Findings
    entry: str
    directly: Report
    through: Report

    def list_failures(self, directly: Sequence[str]) -> dict[str, str]:
        """The failures through dragoman of cases that have one of these verdicts directly, with their reasons."""
        found = self.through.failures.items()
        return {id_: why for id_, why in found if self.directly.verdicts.get(id_) in directly}

    @property
    def new_failures(self) -> dict[str, str]:
        """The cases that pass directly and fail through dragoman."""
        return self.list_failures(_PASSED)

    @property
    def unclear_failures(self) -> dict[str, str]:
        """The cases that fail through dragoman, and that show nothing directly: the server does not serve the protocol,
        streams it unasked, or has a model that did not cooperate."""
        return self.list_failures(_UNDECIDED)


def learn_server(url: str, model: str, folder: Path, only: Sequence[str] = (), dialect: str = "") -> LearnedServer:
    """Learn the server, and run the suite directly and through dragoman. The entry and the reports go to `folder`.
    Raises LearnError, ConfigErrors if the entry does not pass the check, and SessionError."""
    folder.mkdir(parents=True, exist_ok=True)
    findings = asyncio.run(_learn(url, model, dialect))
    entry = render_entry(findings, EntryNames("learned"), f"dragoman learn {url}")
    (folder / "entry.yaml").write_text(entry, "utf-8")
    check_text(entry, "entry.yaml", {})
    directly = _run_suite(findings.base_url, findings, folder / "directly.json", only)
    with ProxyServers(folder) as start:
        origin = start(entry)
        root = load_dialect(findings.dialect).root
        through = _run_suite(f"{origin}{root}", findings, folder / "through.json", only)
    return LearnedServer(findings, entry, directly, through)


def learn_own_engine(folder: Path, only: Sequence[str] = ()) -> LearnedServer:
    """Learn dragoman's own engine, served by dragoman. Raises as `learn_server` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProxyServers(folder) as start:
        origin = start(
            {"providers": {"own": {"engine": "local"}}, "models": {_MINI: {"targets": [{"provider": "own"}]}}}
        )
        return learn_server(origin, _MINI, folder, only)


async def _learn(url: str, model: str, dialect: str) -> Findings:
    transport = HttpTransport(_TIMEOUT)
    learner = Learner(url, transport, Pacer(0.0, 60.0), model=model, dialect=dialect)
    try:
        await learner.learn()
    finally:
        await transport.close()
    return learner.findings


def _run_suite(url: str, findings: Findings, file: Path, only: Sequence[str]) -> Report:
    """Run the suite. Raises SessionError."""
    target = Target(url, findings.dialect, findings.model, profile=findings.get("profile") or "actual")
    cases = select_cases(load_cases(BUILT_IN_CASES), only, "MAY")
    Session(target, cases, name=url, timeout=_TIMEOUT).run(ReportFiles(json=file))
    results: list[JsonObject] = json.loads(file.read_text("utf-8"))["cases"]
    failures = {one["id"]: str(one["reason"]) for one in results if one["verdict"] in _FAILED}
    return Report({one["id"]: one["verdict"] for one in results}, failures)
