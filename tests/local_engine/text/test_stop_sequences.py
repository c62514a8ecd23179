"""Stop sequences: text is shown up to the first one, and no more than necessary is held back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.text.stop_sequences import StopSequenceScanner

STOPS = st.lists(st.text("abc", min_size=1, max_size=4), max_size=3)


@given(st.lists(st.text("abc", max_size=4), max_size=12), STOPS)
def test_text_is_shown_up_to_the_first_stop_sequence(parts: list[str], stops: list[str]) -> None:
    scanner, shown, added = StopSequenceScanner(stops), "", ""
    for part in parts:
        added += part
        shown += scanner.add(part)
        assert not any(stop in shown for stop in stops)
        if scanner.found is not None:
            assert added.startswith(shown + scanner.found) and scanner.add("more") == "" and scanner.finish() == ""
            return
    assert not any(stop in added for stop in stops)
    assert shown + scanner.finish() == added


def test_only_a_possible_start_of_a_stop_sequence_is_held_back() -> None:
    scanner = StopSequenceScanner(["END", "NO"])
    assert [scanner.add(text) for text in ("go E", "N", "gine N", "OW")] == ["go ", "", "ENgine ", ""]
    assert scanner.found == "NO"
