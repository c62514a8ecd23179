from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.responses.accumulator import Accumulator
from dragoman.adapters.responses.events import (
    ARGUMENTS,
    BY_DELTA,
    BY_DONE,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    TextKind,
    annotation_added,
    item_added,
    item_done,
    lifecycle_event,
    new_part,
    part_added,
    part_done,
    text_delta,
    text_done,
)
from dragoman.contract.json_types import JsonObject

RESPONSE = {"id": "resp_1", "status": "in_progress", "output": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "status": "in_progress"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "", "status": "in_progress"}
CITATION = {"type": "url_citation", "url": "http://a", "title": "a", "start_index": 0, "end_index": 1}


def added_up(*events: JsonObject) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.add(event)
    return accumulator


def pieces(kind: TextKind, *texts: str, index: int = 0, at: int = 0) -> list[JsonObject]:
    return [text_delta(kind, "msg_1", index, at, text) for text in texts]


def test_an_open_item_is_incomplete_and_has_the_text_so_far() -> None:
    response = added_up(
        lifecycle_event("created", RESPONSE),
        item_added(0, MESSAGE),
        part_added(OUTPUT_TEXT, "msg_1", 0, 0, new_part(OUTPUT_TEXT)),
        *pieces(OUTPUT_TEXT, "Hel", "lo"),
    ).response("failed", {"code": "server_error", "message": "m"})
    content = [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]
    assert response == {
        "id": "resp_1",
        "status": "failed",
        "error": {"code": "server_error", "message": "m"},
        "output": [{**MESSAGE, "status": "incomplete", "content": content}],
    }
    assert MESSAGE["content"] == []


def test_what_an_item_is_when_done_wins_over_its_pieces() -> None:
    done = {**MESSAGE, "status": "completed", "content": [new_part(OUTPUT_TEXT, "Other")]}
    accumulator = added_up(item_added(0, MESSAGE), *pieces(OUTPUT_TEXT, "a"), item_done(0, done))
    assert accumulator.output() == [done]


def test_items_stand_in_the_order_of_their_index_and_interleaved_arguments_stay_apart() -> None:
    accumulator = added_up(
        item_added(1, {**CALL, "id": "fc_2"}),
        item_added(0, CALL),
        *pieces(ARGUMENTS, '{"a"', index=0),
        *pieces(ARGUMENTS, "{}", index=1),
        *pieces(ARGUMENTS, ":1}", index=0),
    )
    assert [(item["id"], item["arguments"]) for item in accumulator.output()] == [("fc_1", '{"a":1}'), ("fc_2", "{}")]


@pytest.mark.parametrize(
    ("kind", "place", "part"),
    [
        (OUTPUT_TEXT, "content", {"type": "output_text", "text": "ab", "annotations": [], "logprobs": []}),
        (REFUSAL, "content", {"type": "refusal", "refusal": "ab"}),
        (REASONING_TEXT, "content", {"type": "reasoning_text", "text": "ab"}),
        (SUMMARY_TEXT, "summary", {"type": "summary_text", "text": "ab"}),
    ],
)
def test_a_part_that_was_never_added_comes_with_its_text(kind: TextKind, place: str, part: JsonObject) -> None:
    assert added_up(item_added(0, MESSAGE), *pieces(kind, "a", "b")).output()[0][place] == [part]
    assert added_up(item_added(0, MESSAGE), text_done(kind, "msg_1", 0, 0, "ab")).output()[0][place] == [part]


def test_annotations_and_log_probabilities_are_collected() -> None:
    token = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
    accumulator = added_up(
        item_added(0, MESSAGE),
        text_delta(OUTPUT_TEXT, "msg_1", 0, 0, "a", [token]),
        text_delta(OUTPUT_TEXT, "msg_1", 0, 0, "b", [token]),
        annotation_added("msg_1", 0, 0, 0, CITATION),
    )
    part = accumulator.output()[0]["content"][0]
    assert part == new_part(OUTPUT_TEXT, "ab", [CITATION], [token, token])
    accumulator.add(text_done(OUTPUT_TEXT, "msg_1", 0, 0, "ab", [token, token]))
    assert accumulator.output()[0]["content"] == [part]


def test_a_part_that_is_done_replaces_what_came_before() -> None:
    part = new_part(REFUSAL, "No.")
    accumulator = added_up(item_added(0, MESSAGE), *pieces(REFUSAL, "N"), part_done(REFUSAL, "msg_1", 0, 0, part))
    assert accumulator.output()[0]["content"] == [part]


def test_the_last_event_has_the_last_word_and_an_empty_output_in_it_none() -> None:
    done = {**MESSAGE, "status": "completed"}
    events = [lifecycle_event("created", RESPONSE), item_added(0, MESSAGE), item_done(0, done)]
    final = {"id": "resp_1", "status": "completed", "output": [CALL], "usage": {}}
    assert added_up(*events, lifecycle_event("completed", final)).response() == final
    assert added_up(*events, lifecycle_event("completed", {**final, "output": []})).response()["output"] == [done]


def test_a_search_that_did_not_end_has_failed() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "searching"}
    assert added_up(item_added(0, search)).output() == [{**search, "status": "failed"}]


NAMES = [*BY_DELTA, *BY_DONE, "response.created", "response.completed", "response.output_item.added"]
NAMES += ["response.output_item.done", "response.content_part.added", "response.output_text.annotation.added", "x"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text"]), inner, max_size=2),
    max_leaves=4,
)
ITEM = st.fixed_dictionaries({"type": st.sampled_from(["message", "function_call"]) | JSON})
KEYS = ["delta", "text", "refusal", "arguments", "logprobs", "part", "annotation", "response", "content_index"]
EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(NAMES)},
    optional={"output_index": st.integers(0, 1) | JSON, "item": ITEM | JSON, **dict.fromkeys(KEYS, JSON)},
)


@given(events=st.lists(EVENT, max_size=8))
def test_adding_up_never_fails(events: list[JsonObject]) -> None:
    response = added_up(*events).response("failed")
    assert response["status"] == "failed" and isinstance(response["output"], list)
