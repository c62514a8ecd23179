"""The laws for answers: what they take for the same text, and what they find."""

from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonObject
from tools.fuzz.receipt_holes import find_holes
from tools.fuzz.said_texts import Said, collect_texts, compare_texts

BEGIN = {"type": "message_start", "message": {"content": []}}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


def piece(**delta: object) -> JsonObject:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def say(*events: JsonObject) -> Said:
    (said,) = collect_texts({"events": [BEGIN, *events]})
    return said


def test_the_explanation_of_a_refusal_that_was_written_in_pieces_is_no_other_text() -> None:
    details = {"type": "refusal", "explanation": "not that"}
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    assert say(piece(text="not "), piece(text="that"), end) == {"visible": {"notthat"}}
    assert say(end) == {"visible": {"notthat"}}


def test_the_input_of_a_tool_that_the_provider_runs_is_the_same_in_pieces_and_whole() -> None:
    streamed = say({"type": "content_block_start", "index": 0, "content_block": SEARCH}, piece(partial_json='{"q":1}'))
    (whole,) = collect_texts({"type": "message", "content": [{**SEARCH, "input": {"q": 1}}]})
    assert streamed == whole == {"arguments": {'{"q":1}'}}


def test_an_event_has_no_content_but_the_message_that_begins_has() -> None:
    assert say({**piece(text="a"), "content": "x"}) == {"visible": {"a"}}
    begun = {"type": "message_start", "message": {"content": [{"type": "text", "text": "b"}]}}
    assert collect_texts({"events": [begun]}) == [{"visible": {"b"}}]


def test_a_text_that_is_gone_or_comes_twice_is_found() -> None:
    once, twice = say(piece(text="a")), say(piece(text="a"), piece(text="a"))
    assert [kind for kind, _ in compare_texts(once, say())] == ["visible"]
    assert [kind for kind, _ in compare_texts(once, twice)] == ["visible"]


@pytest.mark.parametrize(
    ("before", "after", "holes"),
    [
        ({"arguments": '{"a": 1}'}, {"input": {"a": 1}}, 0),
        ({"arguments": '{"a": 2}'}, {"input": {"a": 1}}, 2),
        ({"x": [{"text": "\0"}, {"text": '"'}]}, {"x": [{"text": '\0\n\n"'}]}, 0),
        ({"x": [{"text": "\0"}, {"text": '"'}]}, {"x": [{"text": '\0!"'}]}, 1),
    ],
)
def test_the_object_that_a_text_spells_is_the_text(before: JsonObject, after: JsonObject, holes: int) -> None:
    assert len(find_holes(before, after, ())) == holes
