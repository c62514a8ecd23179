"""The fault table: which cases detect each fault of a fake provider.

A fault is a behaviour of the fakes that alters a correct behaviour, its baseline. A case detects the fault if it passes
against a fake with the baseline and does not pass against a fake with the fault. HARMLESS lists the behaviours that are
unusual but allowed, with the reason; no case may complain about them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .case_files import load_cases
from .dialects import DIALECTS, load_dialect
from .fakes import BEHAVIOURS, FakeProvider, answers
from .model import Case
from .runner import CaseRunner
from .target import Target
from .transport import HttpTransport

__all__ = [
    "CORRECT_BEHAVIOURS",
    "FAULTS",
    "HARMLESS",
    "Fault",
    "FaultRow",
    "build_fault_table",
    "find_baseline_cases",
    "find_detecting_cases",
]

CORRECT_BEHAVIOURS = frozenset(
    {"as-asked", "text", "tools", "call", "parallel-tools", "reasoning", "length", "content-filter", "refusal", "json"}
    | {"redacted-thinking", "citations", "server-tool", "pause-turn", "context-full", "cached-usage"}
)
"""Behaviours that are no faults."""

_HARMLESS_EVERYWHERE = {
    "slow": "a slow reply is correct",
    "slow-first": "a slow reply is correct",
    "pause": "a slow reply is correct",
    "split-utf8": "a stream may be split between any two bytes",
    "huge-event": "no reference limits the size of an event",
}
"""Maps a behaviour that is allowed in every dialect to the reason."""


def _list_unaltered(dialect: str) -> dict[str, str]:
    """Map each behaviour that concerns a form of chat which the dialect's protocols do not have to that reason."""
    data = load_dialect(dialect)
    protocol, foreign = next(iter(data.paths)), {name for one in DIALECTS for name in load_dialect(one).behaviours}
    foreign -= {*data.behaviours}
    unaltered = (name for name, one in BEHAVIOURS.items() if one.is_noop(protocol) and name not in foreign)
    return dict.fromkeys(unaltered, f"{protocol} has no such form")


HARMLESS: Mapping[str, Mapping[str, str]] = {
    name: {**_HARMLESS_EVERYWHERE, **_list_unaltered(name), **load_dialect(name).harmless} for name in DIALECTS
}
"""Maps a dialect to the behaviours that are allowed in it, each with the reason."""

_ARGUMENTS = {
    "huge-body": "huge-body(size=33)",
    "gzip-bomb": "gzip-bomb(size=33)",
    "huge-event": "huge-event(size=1)",
    "pause": "pause(delay=0.01)",
    "slow": "slow(delay=0.001)",
    "slow-first": "slow-first(delay=0.01)",
}
"""Faults with arguments that show the fault in the least time."""
_DETECTED = ("fail", "error", "warn")
_CONCURRENCY = 16
_TIMEOUT = 10.0
_SHORT_TIMEOUTS = {"hang": 0.5, "hang-after-headers": 0.5, "stall": 0.5}
"""Faults that only a timeout detects: the timeout in seconds."""
_MOST_CASES_IF_HARMLESS = 12


@dataclass(frozen=True, slots=True)
class Fault:
    """A behaviour that is a fault in some of its dialects."""

    name: str
    about: str
    baseline: str
    dialects: tuple[str, ...]

    @property
    def behaviour(self) -> str:
        return _ARGUMENTS.get(self.name, self.name)

    def harmless_reason(self, dialect: str) -> str:
        """Why the behaviour is allowed in that dialect, empty if it is a fault."""
        return HARMLESS.get(dialect, {}).get(self.name, "")


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A row of the fault table: `cases` are the cases that detect the fault, `asked` is how many were run."""

    fault: Fault
    dialect: str
    cases: tuple[str, ...]
    asked: int

    @property
    def is_missed(self) -> bool:
        return not self.cases and not self.fault.harmless_reason(self.dialect)


def _list_faults() -> Iterable[Fault]:
    for name, behaviour in BEHAVIOURS.items():
        if name not in CORRECT_BEHAVIOURS:
            dialects = DIALECTS if behaviour.dialects is None else behaviour.dialects
            yield Fault(name, behaviour.description, _choose_baseline(behaviour.answer), dialects)


def _choose_baseline(answer: object) -> str:
    if isinstance(answer, partial):
        return "parallel-tools"
    return "tools" if answer is answers.answer_with_calls else "text"


FAULTS: tuple[Fault, ...] = tuple(_list_faults())


async def find_baseline_cases(dialect: str, behaviour: str, cases: Sequence[Case]) -> list[Case]:
    """Find the cases that expect a success and pass against a fake with the baseline; only these can detect a fault.

    Cases that check a schema come first. No case stays a probe: a 404 is a fault here, not a missing protocol.
    """
    candidates = [case for case in cases if case.dialect == dialect and not case.upstreams and _expects_success(case)]
    async with FakeProvider(dialect, behaviour=behaviour) as fake:
        http = HttpTransport(_TIMEOUT)
        try:
            results = await CaseRunner(_build_target(fake), http, concurrency=_CONCURRENCY).run_cases(candidates)
        finally:
            await http.close()
    passing = [replace(result.case, probe=False) for result in results if result.verdict == "pass"]
    return sorted(passing, key=lambda case: not any(step.expect.schema for step in case.steps))


def _expects_success(case: Case) -> bool:
    return any(200 in step.expect.status for step in case.steps)


async def find_detecting_cases(dialect: str, fault: Fault, cases: Sequence[Case], *, first: bool = False) -> list[str]:
    """Find the ids of the cases that detect the fault. With `first`, stop at the first one, and run only a few cases
    if the dialect allows the behaviour."""
    async with FakeProvider(dialect, behaviour=fault.behaviour) as fake:
        http = HttpTransport(_SHORT_TIMEOUTS.get(fault.name, _TIMEOUT))
        runner = CaseRunner(_build_target(fake), http, concurrency=_CONCURRENCY)
        try:
            if first:
                return await _find_first(
                    runner, cases[:_MOST_CASES_IF_HARMLESS] if fault.harmless_reason(dialect) else cases
                )
            return [result.case.id for result in await runner.run_cases(cases) if result.verdict in _DETECTED]
        finally:
            await http.close()


async def _find_first(runner: CaseRunner, cases: Sequence[Case]) -> list[str]:
    for case in cases:
        if (await runner.run_case(case)).verdict in _DETECTED:
            return [case.id]
    return []


def _build_target(fake: FakeProvider) -> Target:
    return Target(fake.base_url, fake.dialect, "fake-model")


async def build_fault_table(
    dialects: Sequence[str] = DIALECTS, cases: Sequence[Case] | None = None, *, first: bool = False
) -> list[FaultRow]:
    """Build a row for each fault in each of its dialects."""
    known = load_cases() if cases is None else cases
    rows = await asyncio.gather(*(_build_rows(dialect, known, first) for dialect in dialects))
    return [row for found in rows for row in found]


async def _build_rows(dialect: str, cases: Sequence[Case], first: bool) -> list[FaultRow]:
    baselines: dict[str, list[Case]] = {}
    rows = []
    for fault in FAULTS:
        if dialect not in fault.dialects:
            continue
        if fault.baseline not in baselines:
            baselines[fault.baseline] = await find_baseline_cases(dialect, fault.baseline, cases)
        passing = baselines[fault.baseline]
        detecting = await find_detecting_cases(dialect, fault, passing, first=first)
        rows.append(FaultRow(fault, dialect, tuple(detecting), len(passing)))
    return rows
