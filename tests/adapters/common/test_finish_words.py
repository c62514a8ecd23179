from __future__ import annotations

import pytest

from dragoman.adapters.common.finish_words import ENDINGS, Failure, find_ending, has_finished


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("STOP", "stop"), ("FinishReason.STOP", "stop"), ("end_turn", "stop"), ("EOS_TOKEN", "stop"),
        ("COMPLETE", "stop"), ("MAX_TOKENS", "length"), ("max-tokens", "length"), ("maxTokens", "length"),
        ("model_length", "length"), ("content-filter", "content_filter"), ("SAFETY", "content_filter"),
        ("content_filter: OTHER", "content_filter"), ("toolUse", "tool_calls"), ("function_call", "function_call"),
    ],
)  # fmt: skip
def test_a_word_is_known_in_any_spelling(word: str, ending: str) -> None:
    assert find_ending(word) == ending


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("error", "upstream_error"), ("abort", "upstream_invalid_response"), ("TIMEOUT", "upstream_timeout"),
        ("insufficient_system_resource", "upstream_unavailable"), ("engine_overloaded", "upstream_unavailable"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "upstream_invalid_response"),
    ],
)  # fmt: skip
def test_a_word_of_failure_has_a_kind(word: str, kind: str) -> None:
    ending = find_ending(word)
    assert isinstance(ending, Failure) and ending.kind == kind


@pytest.mark.parametrize("word", ["tired", "OTHER", "FINISH_REASON_UNSPECIFIED", "", "stop!", "invalid flag"])
def test_other_words_are_not_known(word: str) -> None:
    assert find_ending(word) is None


def test_every_word_is_in_the_spelling_that_is_looked_up() -> None:
    assert {word for word in ENDINGS if find_ending(word.upper()) != ENDINGS[word]} == set()


@pytest.mark.parametrize(("word", "finished"), [(None, False), ("", False), ("null", False), ("tired", True)])
def test_a_choice_goes_on_until_it_says_a_word(word: str | None, finished: bool) -> None:
    assert has_finished(word) is finished
