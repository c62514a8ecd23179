"""The clock that no sudden change can make delete everything."""

from __future__ import annotations

import pytest

from dragoman.proxy.conversations.stores.guarded_clock import PROOF, TOLERANCE, ClockState, GuardedClock

DAY = 86_400.0
START = 1_700_000_000.0


class Machine:
    """A clock that can be set, and the time that passes."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.offset = START
        self.reports: list[str] = []

    def start(self, state: ClockState | None = None) -> GuardedClock:
        clock = GuardedClock(self.reports.append, lambda: self.passed + self.offset, lambda: self.passed)
        if state is not None:
            clock.resume(state)
        return clock


@pytest.fixture
def machine() -> Machine:
    return Machine()


def bounds(clock: GuardedClock) -> tuple[float, float]:
    return clock.bounds()


@pytest.mark.parametrize("jump", [40 * DAY, -40 * DAY, TOLERANCE + 1])
def test_a_jump_does_not_count_until_it_has_held(machine: Machine, jump: float) -> None:
    clock = machine.start()
    machine.offset += jump
    assert bounds(clock) == (START, START)
    machine.passed += PROOF - 1
    assert bounds(clock) == (START + PROOF - 1, START + PROOF - 1)
    machine.passed += 1
    assert bounds(clock) == (START + PROOF + jump, START + PROOF + jump)
    assert len(machine.reports) == 2
    assert f"{abs(jump) / 3600:.1f} hours {'ahead' if jump > 0 else 'back'}" in machine.reports[0]


def test_a_jump_that_goes_away_never_counts(machine: Machine) -> None:
    clock = machine.start()
    for _ in range(3):
        machine.offset += 40 * DAY
        assert bounds(clock) == (START + machine.passed,) * 2
        machine.passed += PROOF - 10
        assert bounds(clock) == (START + machine.passed,) * 2
        machine.offset -= 40 * DAY
        assert bounds(clock) == (START + machine.passed,) * 2
    assert len(machine.reports) == 6


def test_each_jump_has_to_hold_by_itself(machine: Machine) -> None:
    clock = machine.start()
    for _ in range(5):
        machine.offset += DAY
        assert bounds(clock) == (START + machine.passed,) * 2
        machine.passed += PROOF * 0.9
        assert bounds(clock) == (START + machine.passed,) * 2


def test_small_corrections_count_at_once(machine: Machine) -> None:
    clock = machine.start()
    for change in (TOLERANCE, -TOLERANCE, 1.0):
        machine.offset += change
        assert bounds(clock) == (machine.offset,) * 2
    assert machine.reports == []


@pytest.mark.parametrize("away", [40 * DAY, -40 * DAY])
def test_after_a_start_both_times_count_until_the_proof(machine: Machine, away: float) -> None:
    state = machine.start().get_state()
    assert state == ClockState(START, None)
    machine.offset += away
    clock = machine.start(state)
    assert bounds(clock) == tuple(sorted((START, START + away)))
    machine.passed += PROOF
    assert bounds(clock) == (START + PROOF + away,) * 2
    assert machine.reports == []


def test_after_a_short_pause_nothing_is_doubted(machine: Machine) -> None:
    state = machine.start().get_state()
    machine.passed += TOLERANCE
    assert bounds(machine.start(state)) == (START + TOLERANCE,) * 2


def test_a_restart_does_not_begin_the_proof_again(machine: Machine) -> None:
    state = machine.start().get_state()
    machine.offset += 2 * DAY
    for _ in range(4):
        clock = machine.start(state)
        assert clock.bounds()[0] < START + DAY
        machine.passed += PROOF * 0.3
        state = clock.get_state()
    assert bounds(machine.start(state)) == (START + 2 * DAY + machine.passed,) * 2


def test_a_doubt_about_another_time_does_not_count(machine: Machine) -> None:
    """The machine began in 1970, was corrected, and jumps far ahead at the next start."""
    clock = machine.start(ClockState(START + 60, doubted_at=5.0))
    machine.offset += 40 * DAY
    clock = machine.start(clock.get_state())
    clock = machine.start(ClockState(START + 60, doubted_at=5.0))
    assert clock.bounds()[0] == START + 60
    machine.offset -= 40 * DAY
    assert bounds(clock) == (START,) * 2
