"""The contract suite against a server: its own failures are known, so that a run shows what is new."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.contract.case_files import BUILT_IN_CASES, load_cases
from dragoman.contract.dialects import DEFAULT_DIALECT
from dragoman.contract.session import ReportFiles, Session, select_cases
from dragoman.contract.target import Target

from .catalog import NO_KEY, Server
from .processes import RunningServer

__all__ = ["EXPECTED", "WARNED", "SuiteRun", "list_runs", "run_suite"]

EXPECTED, WARNED = Path(__file__).with_name("expected"), Path(__file__).with_name("warned")
"""A file for each server: the failures that were found true of it, `case id: what it sends`."""

_BUDGET = 12_000
"""Tokens: far more than a complete run writes, which the forecast of the suite says."""
_TIMEOUT = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of the suite: a model, and the protocols that it is asked for; all if the set is empty."""

    name: str
    model: str
    protocols: frozenset[str] = frozenset()


def list_runs(server: Server) -> Iterator[SuiteRun]:
    """List the runs of a server: one for each of its models. The first one asks also for what no model serves."""
    served: dict[str, set[str]] = {}
    for protocol, model in server.models.items():
        served.setdefault(model, set()).add(protocol)
    if len(served) == 1:
        yield SuiteRun(server.name, next(iter(served)))
        return
    rest = {case.protocol for case in load_cases(BUILT_IN_CASES)} - set(server.models)
    for model, protocols in served.items():
        yield SuiteRun(f"{server.name}-{model}", model, frozenset(protocols | rest))
        rest = set()


def run_suite(running: RunningServer, folder: Path, only: Sequence[str] = ()) -> int:
    """Run the cases that match a pattern of `only`, or all, and write reports and wire logs into `folder`. Return the
    worst exit status of the suite; a known failure is none. Raises SessionError."""
    return max([_run(running, one, folder, only) for one in list_runs(running.server)])


def _run(running: RunningServer, one: SuiteRun, folder: Path, only: Sequence[str]) -> int:
    server = running.server
    target = Target(
        running.base_url,
        DEFAULT_DIALECT,
        one.model,
        key=None if server.api_key == NO_KEY else server.api_key,
        without=frozenset(server.lacks),
        protocols=one.protocols,
    )
    shutil.rmtree(folder / one.name, ignore_errors=True)
    session = Session(
        target,
        select_cases(load_cases(BUILT_IN_CASES), only, "MAY"),
        name=server.title,
        timeout=_TIMEOUT,
        budget=_BUDGET,
        record=folder / one.name,
    )
    expected = EXPECTED / f"{server.name}.yaml"
    files = {form: folder / f"{one.name}.{form}" for form in ("json", "html", "markdown")}
    return session.run(ReportFiles(**files, expect=expected if expected.exists() else None))
