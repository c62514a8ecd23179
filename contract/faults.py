"""The fault table: which cases notice each way in which a fake provider can misbehave.

A fault is a behaviour of the fakes that alters an ordinary one, its baseline. A case notices it where the case passes
against a fake that behaves like the baseline and no longer does against one with the fault. What is odd but allowed is
noticed by no case, and stands in HARMLESS with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .corpus import load_cases
from .dialects import DIALECTS
from .dialects import dialect as dialect_data
from .fakes import BEHAVIOURS, FakeProvider, answers
from .model import Case
from .runner import Run
from .target import Target
from .transport import Http

__all__ = ["DIALECTS", "FAULTS", "HARMLESS", "ORDINARY", "Fault", "Row", "baseline", "noticed", "table"]

ORDINARY = frozenset(
    {"as-asked", "text", "tools", "call", "parallel-tools", "reasoning", "length", "content-filter", "refusal", "json"}
)
"""What a model may say: no faults."""

_EVERYWHERE = {
    "slow": "slowness is no mistake",
    "slow-first": "slowness is no mistake",
    "pause": "slowness is no mistake",
    "split-utf8": "a stream may be cut into pieces anywhere",
    "huge-event": "no reference bounds the size of an event",
}
"""What is odd but allowed in every dialect, and why."""

HARMLESS: Mapping[str, Mapping[str, str]] = {name: {**_EVERYWHERE, **dialect_data(name).harmless} for name in DIALECTS}
"""Dialect -> fault -> why it is allowed there."""

_SPELLED = {
    "huge-body": "huge-body(size=33)",
    "gzip-bomb": "gzip-bomb(size=33)",
    "huge-event": "huge-event(size=1)",
    "pause": "pause(delay=0.01)",
    "slow": "slow(delay=0.001)",
    "slow-first": "slow-first(delay=0.01)",
}
"""With arguments that show them in as little time as they need."""
_BAD = ("fail", "error", "warn")
_CASES_AT_A_TIME = 16
_PATIENCE = 10.0
_HANGING = {"hang": 0.5, "hang-after-headers": 0.5, "stall": 0.5}
"""Faults that nobody notices sooner than patience ends: seconds."""
_ENOUGH = 12


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    about: str
    baseline: str
    dialects: tuple[str, ...]

    @property
    def behaviour(self) -> str:
        return _SPELLED.get(self.name, self.name)

    def harmless(self, dialect: str) -> str:
        """Why it is no fault in that dialect, empty where it is one."""
        return HARMLESS.get(dialect, {}).get(self.name, "")


@dataclass(frozen=True, slots=True)
class Row:
    """`cases` are those that notice the fault, of so many that could."""

    fault: Fault
    dialect: str
    cases: tuple[str, ...]
    asked: int

    @property
    def missed(self) -> bool:
        return not self.cases and not self.fault.harmless(self.dialect)


def _faults() -> Iterable[Fault]:
    for name, behaviour in BEHAVIOURS.items():
        if name not in ORDINARY:
            yield Fault(
                name,
                behaviour.about,
                _ordinary(behaviour.answer),
                DIALECTS if behaviour.only is None else behaviour.only,
            )


def _ordinary(answer: object) -> str:
    if isinstance(answer, partial):
        return "parallel-tools"
    return "tools" if answer is answers.calls else "text"


FAULTS: tuple[Fault, ...] = tuple(_faults())


async def baseline(dialect: str, behaviour: str, cases: Sequence[Case]) -> list[Case]:
    """The cases that pass against a well-behaved fake and hope for an answer: only these can notice anything. Those
    that look at bodies come first. None is a probe any more: a 404 is a fault here, not a protocol that is missing."""
    hopeful = [case for case in cases if case.dialect == dialect and not case.upstreams and _wants_answer(case)]
    async with FakeProvider(dialect, behaviour=behaviour) as fake:
        http = Http(_PATIENCE)
        try:
            results = await Run(_target(fake), http, concurrency=_CASES_AT_A_TIME).results(hopeful)
        finally:
            await http.close()
    able = [replace(result.case, probe=False) for result in results if result.verdict == "pass"]
    return sorted(able, key=lambda case: not any(step.expect.schema for step in case.steps))


def _wants_answer(case: Case) -> bool:
    return any(200 in step.expect.status for step in case.steps)


async def noticed(dialect: str, fault: Fault, cases: Sequence[Case], *, first: bool = False) -> list[str]:
    """The ids of those of these cases that notice the fault; with `first` no more than one is looked for, and not long
    where the dialect allows it."""
    async with FakeProvider(dialect, behaviour=fault.behaviour) as fake:
        http = Http(_HANGING.get(fault.name, _PATIENCE))
        run = Run(_target(fake), http, concurrency=_CASES_AT_A_TIME)
        try:
            if first:
                return await _first(run, cases[:_ENOUGH] if fault.harmless(dialect) else cases)
            return [result.case.id for result in await run.results(cases) if result.verdict in _BAD]
        finally:
            await http.close()


async def _first(run: Run, cases: Sequence[Case]) -> list[str]:
    for case in cases:
        if (await run.case(case)).verdict in _BAD:
            return [case.id]
    return []


def _target(fake: FakeProvider) -> Target:
    return Target(fake.base_url, fake.dialect, "fake-model")


async def table(
    dialects: Sequence[str] = DIALECTS, cases: Sequence[Case] | None = None, *, first: bool = False
) -> list[Row]:
    """A row for each fault in each of its dialects."""
    known = load_cases() if cases is None else cases
    rows = await asyncio.gather(*(_rows(dialect, known, first) for dialect in dialects))
    return [row for found in rows for row in found]


async def _rows(dialect: str, cases: Sequence[Case], first: bool) -> list[Row]:
    able: dict[str, list[Case]] = {}
    rows = []
    for fault in FAULTS:
        if dialect not in fault.dialects:
            continue
        if fault.baseline not in able:
            able[fault.baseline] = await baseline(dialect, fault.baseline, cases)
        mine = able[fault.baseline]
        rows.append(Row(fault, dialect, tuple(await noticed(dialect, fault, mine, first=first)), len(mine)))
    return rows
