"""The transition table of an attempt is total where it must be, and its ends are ends."""

from __future__ import annotations

from typing import get_args

import pytest

from dragoman.adapters.pipeline.attempt import _ACTIONS
from dragoman.adapters.pipeline.transitions import TRANSITIONS, Action, Input, State

STATES: tuple[State, ...] = get_args(State)
INPUTS: tuple[Input, ...] = get_args(Input)


def test_every_action_is_used_and_carried_out() -> None:
    actions = {action for _, action in TRANSITIONS.values()}
    assert actions == set(get_args(Action)) == set(_ACTIONS)


def test_every_state_and_every_input_occurs() -> None:
    assert {state for state, _ in TRANSITIONS} == set(STATES)
    assert {given for _, given in TRANSITIONS} == set(INPUTS)


@pytest.mark.parametrize("state", STATES)
def test_a_fault_can_come_in_every_state(state: State) -> None:
    following, _ = TRANSITIONS[state, "fault"]
    assert following == ("complete" if state == "complete" else "failed")


@pytest.mark.parametrize("state", ["complete", "failed"])
@pytest.mark.parametrize("given", INPUTS)
def test_nothing_changes_after_the_end(state: State, given: Input) -> None:
    assert TRANSITIONS[state, given] == (state, "ignore")


@pytest.mark.parametrize("state", STATES)
def test_an_end_can_be_reached_from_every_state(state: State) -> None:
    reached, news = {state}, {state}
    while news:
        news = {following for (start, _), (following, _) in TRANSITIONS.items() if start in news} - reached
        reached |= news
    assert "complete" in reached or state == "failed"


def test_only_a_saved_record_leads_from_a_held_answer_to_a_complete_one() -> None:
    to_complete = {
        (state, given)
        for (state, given), (following, _) in TRANSITIONS.items()
        if following == "complete" and state in ("saving", "closing")
    }
    assert to_complete == {("saving", "saved"), ("closing", "saved")}
