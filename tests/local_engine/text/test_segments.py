"""The marker lexer: it finds every marker and preserves the text, however the text is split."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from parser_rig import FRAGMENTS, split

from dragoman.local_engine.text.segments import MarkerLexer

MARKERS = ["<think>", "</think>", "[ARGS]"]


@given(FRAGMENTS, st.lists(st.integers(0, 200)))
def test_the_lexer_finds_all_markers_and_preserves_the_text(text: str, positions: list[int]) -> None:
    lexer = MarkerLexer(MARKERS)
    found = [lexeme for part in split(text, positions) for lexeme in lexer.add(part)]
    assert "".join(lexeme.text for lexeme in found) + lexer.finish() == text
    assert sum(lexeme.marker for lexeme in found) == sum(map(text.count, MARKERS))
