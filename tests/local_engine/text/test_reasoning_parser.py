"""The reasoning parser: markers in the reply or in the prompt, and independence of how the text is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parser_rig import FRAGMENTS, content, parse, split

from dragoman.local_engine.text.reasoning_parser import THINK_MARKERS, ReasoningParser
from dragoman.local_engine.text.segments import Segment

CASES: list[tuple[bool, str, list[Segment]]] = [
    (False, "<think>\nhm, so\n</think>\n\nYes.", [Segment("reasoning", "hm, so"), content("Yes.")]),
    (True, "hm\n</think>Yes </think>", [Segment("reasoning", "hm"), content("Yes </think>")]),
    (False, "Yes <think>no</think>", [content("Yes <think>no</think>")]),
    (False, " \n<think>cut ", [Segment("reasoning", "cut ")]),
    (False, "<thin", [content("<thin")]),
    (False, "  ", [content("  ")]),
    (False, "<think>\n\n</think>\n\nYes", [content("Yes")]),
]


@pytest.mark.parametrize(("opened", "text", "expected"), CASES)
def test_reasoning_is_separated_from_content(opened: bool, text: str, expected: list[Segment]) -> None:
    assert parse(ReasoningParser(THINK_MARKERS, opened=opened), [text]) == expected
    assert parse(ReasoningParser(THINK_MARKERS, opened=opened), list(text)) == expected


@given(FRAGMENTS, st.booleans(), st.lists(st.integers(0, 200)))
def test_the_reasoning_does_not_depend_on_the_split(text: str, opened: bool, positions: list[int]) -> None:
    together = parse(ReasoningParser(THINK_MARKERS, opened=opened), [text])
    assert parse(ReasoningParser(THINK_MARKERS, opened=opened), split(text, positions)) == together
