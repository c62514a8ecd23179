"""Which model serves a name, and what the upstream calls it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.proxy.config.models import TargetChoice
from dragoman.proxy.config.names import find_common_name, match, matches, upstream_name
from dragoman.proxy.config.values import is_model_name, is_model_pattern

MODELS = dict.fromkeys(["fast", "*", "gpt-*", "gpt-4*", "gpt-*-mini", "openai/*", "*-vision", "a/*/c", "o*"])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("fast", "fast"),
        ("faster", "*"),
        ("gpt-5", "gpt-*"),
        ("gpt-4o", "gpt-4*"),
        ("gpt-4o-mini", "gpt-4*"),
        ("gpt-5-mini", "gpt-*-mini"),
        ("openai/gpt-4o", "openai/*"),
        ("o3", "o*"),
        ("llava-vision", "*-vision"),
        ("gpt-", "gpt-*"),
        ("a/b/c", "a/*/c"),
        ("a/b/b/c", "a/*/c"),
        ("FAST", "*"),
        ("gpt-*", None),
        ("*", None),
        ("", None),
        ("a/../b", None),
        ("../b", None),
        ("a b", None),
        ("-a", None),
        ("a\n", None),
        ("x" * 257, None),
        ("x" * 256, "*"),
    ],
)
def test_the_exact_name_or_the_most_specific_pattern_matches(name: str, key: str | None) -> None:
    assert match(MODELS, name) == key


def test_without_a_pattern_nothing_matches() -> None:
    assert match({"fast": None}, "slow") is None
    assert match({}, "slow") is None


@pytest.mark.parametrize(
    ("pattern", "target", "asked", "name"),
    [
        ("fast", TargetChoice(provider="p", model="llama"), "fast", "llama"),
        ("fast", TargetChoice(provider="p"), "fast", "fast"),
        ("fast", TargetChoice(provider="p", model="*"), "fast", "fast"),
        ("gpt-*", TargetChoice(provider="p"), "gpt-5", "gpt-5"),
        ("gpt-*", TargetChoice(provider="p", model="*"), "gpt-5", "gpt-5"),
        ("gpt-*", TargetChoice(provider="p", model="gpt-4"), "gpt-5", "gpt-4"),
        ("openai/*", TargetChoice(provider="p", strip="openai/"), "openai/gpt-5", "gpt-5"),
        ("openai/*", TargetChoice(provider="p", strip="openai/"), "openai/openai/x", "openai/x"),
        ("openai/*", TargetChoice(provider="p"), "openai/gpt-5", "openai/gpt-5"),
    ],
)
def test_the_upstream_gets_the_targets_name_or_the_clients(
    pattern: str, target: TargetChoice, asked: str, name: str
) -> None:
    assert upstream_name(pattern, target, asked) == name


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("gpt-*", "*-mini", "gpt--mini"),
        ("a*b*c", "*c", "abc"),
        ("gpt-*", "claude-*", None),
        ("*-mini", "*-nano", None),
        ("a*", "ab*", "ab"),
    ],
)
def test_a_common_name_of_two_patterns_is_found(one: str, other: str, name: str | None) -> None:
    assert find_common_name(one, other) == find_common_name(other, one) == name


@given(st.text(max_size=20))
def test_a_name_is_a_pattern_that_covers_itself(text: str) -> None:
    if is_model_name(text):
        assert is_model_pattern(text)
        assert matches(text, text)
        assert matches("*", text)
