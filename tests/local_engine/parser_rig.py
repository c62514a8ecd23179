"""What the tests of the text parsers share: parsing a split text, and fragments of markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from dragoman.local_engine.text.segments import Segment, SegmentParser, merge_segments

WORDS = """<tool_call> </tool_call> [TOOL_CALLS] [ARGS] <|python_tag|> <think> </think> [ ] { } "name" : , ; "weather"
"arguments" " \\ a ( ) = clock < | é"""
FRAGMENTS = st.lists(st.sampled_from([*WORDS.split(), " ", "\n"])).map("".join)
"""Texts of markers and punctuation in any order."""


def content(text: str) -> Segment:
    return Segment("content", text)


def parse(parser: SegmentParser, parts: Iterable[str]) -> list[Segment]:
    segments = [segment for part in parts for segment in parser.add(part)]
    return merge_segments([*segments, *parser.finish()])


def split(text: str, positions: Sequence[int]) -> list[str]:
    """Split a text at these positions, counted modulo its length."""
    edges = sorted({0, len(text), *(position % (len(text) + 1) for position in positions)})
    return [text[start:end] for start, end in pairwise(edges)] or [text]
