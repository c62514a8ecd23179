"""One word sets several policies, on every level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.adapters.call import Policy
from dragoman.proxy.config.models import PolicyChoice
from dragoman.proxy.config.presets import PRESETS, find_preset, merge_policies

DEFAULT = Policy(stream_usage="ask")


def test_the_default_preset_is_the_default_policy() -> None:
    assert merge_policies() == merge_policies(PolicyChoice(preset="faithful")) == DEFAULT


def test_lenient_drops_and_clamps() -> None:
    lenient = replace(DEFAULT, unsupported="drop", out_of_range="clamp", extra_parameters="drop")
    assert merge_policies(PolicyChoice(preset="lenient")) == lenient


def test_strict_refuses_what_is_not_exact_and_replies_that_break_a_schema() -> None:
    assert merge_policies(PolicyChoice(preset="strict")) == replace(
        DEFAULT, unsupported="refuse-exactly", replies="strict"
    )


def test_a_single_policy_precedes_the_preset_of_its_own_level() -> None:
    policy = merge_policies(PolicyChoice(preset="lenient", out_of_range="error"))
    assert (policy.unsupported, policy.out_of_range) == ("drop", "error")


def test_a_narrower_preset_precedes_everything_wider() -> None:
    wide = PolicyChoice(preset="lenient", unsupported="drop", replies="off")
    assert merge_policies(wide, PolicyChoice(preset="faithful")) == DEFAULT
    assert merge_policies(wide, PolicyChoice(unsupported="refuse")).out_of_range == "clamp"


def test_a_preset_leaves_other_policies_alone() -> None:
    policy = merge_policies(PolicyChoice(emulate_completions=True), PolicyChoice(preset="strict"))
    assert policy.emulate_completions


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_found_again(name: str) -> None:
    assert find_preset(PRESETS[name]) == name
    assert find_preset(Policy(unsupported="drop")) is None
