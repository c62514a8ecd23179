"""The first stop string is found however a text is cut into pieces, and no more is held back than has to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.emulation.stop_scanner import StopScanner

TEXTS = st.text("ab.", max_size=30)
STOPS = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).map(tuple)


def generate_until_stop(text: str, stops: tuple[str, ...], *, keeps_stop: bool) -> str:
    """What a server gives that looks for stop strings after each character."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[:end] if keeps_stop else text[: end - max(map(len, found))]
    return text


@given(st.lists(TEXTS, max_size=6), STOPS, st.booleans())
def test_the_text_is_that_of_a_server_that_knows_stop_strings(
    pieces: list[str], stops: tuple[str, ...], keeps_stop: bool
) -> None:
    scanner = StopScanner(stops, keeps_stop=keeps_stop)
    said = ""
    for at, piece in enumerate(pieces):
        said += scanner.feed(piece)
        if scanner.has_stopped:
            break
        assert len("".join(pieces[: at + 1])) - len(said) < max(map(len, stops)), "more is held than a stop string has"
    else:
        said += scanner.flush()
    assert said == generate_until_stop("".join(pieces), stops, keeps_stop=keeps_stop)


@pytest.mark.parametrize(
    ("pieces", "stops", "said"),
    [
        (["one EN", "D two"], ("END",), "one "),
        (["one EN", "T two"], ("END",), "one ENT two"),
        (["abc"], ("abc", "b"), "a"),
        (["abc"], ("abc", "bc"), ""),
        (["EN"], ("END",), "EN"),
    ],
)
def test_stop_strings(pieces: list[str], stops: tuple[str, ...], said: str) -> None:
    scanner = StopScanner(stops)
    assert "".join(map(scanner.feed, pieces)) + scanner.flush() == said
