"""A whole response as a stream: every text in its part, every part in its item, and the sum is the response."""

from __future__ import annotations

import pytest

from dragoman.adapters.responses.accumulator import Accumulator
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

TOKEN = {"token": "h", "logprob": -0.1, "bytes": [104], "top_logprobs": []}
CITATION = {"type": "url_citation", "url": "http://a", "title": "a", "start_index": 0, "end_index": 1}
TEXT = {"type": "output_text", "text": "hi", "annotations": [CITATION], "logprobs": [TOKEN]}
REFUSAL = {"type": "refusal", "refusal": "no"}
MESSAGE = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [TEXT, REFUSAL]}
EMPTY = {**MESSAGE, "id": "e", "content": [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]}
CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}", "status": "completed"}
CUSTOM = {"type": "custom_tool_call", "id": "k", "call_id": "d", "name": "n", "input": "", "status": "completed"}
THOUGHT = {
    "type": "reasoning",
    "id": "r",
    "status": "completed",
    "summary": [{"type": "summary_text", "text": "in short"}],
    "content": [{"type": "reasoning_text", "text": "at length"}],
    "encrypted_content": "s",
}
SEARCH = {"type": "web_search_call", "id": "w", "status": "completed"}
ITEMS = [THOUGHT, MESSAGE, EMPTY, CALL, CUSTOM, SEARCH]


def response(*items: JsonObject, **other: JsonValue) -> JsonObject:
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    base = new_response({"model": "m", "input": "x"}, "resp_1", "m", 1)
    return {**base, "status": "completed", "completed_at": 2, "output": list(items), "usage": usage, **other}


def events(whole: JsonObject) -> list[JsonObject]:
    found = restream_response(whole)
    for number, event in enumerate(found):
        violations = load_validator("hub/responses.event").violations({**event, "sequence_number": number})
        assert [v.message for v in violations] == [], event
    return found


def words(found: list[JsonObject]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in found]


def test_a_message_comes_in_parts_and_pieces() -> None:
    assert words(events(response(MESSAGE))) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_an_item_begins_empty() -> None:
    added = [event["item"] for event in events(response(*ITEMS)) if event["type"] == "response.output_item.added"]
    assert [item.get("content") for item in added] == [[], [], [], None, None, None]
    assert (added[0]["summary"], added[3]["arguments"], added[4]["input"]) == ([], "", "")
    assert [item["status"] for item in added] == ["in_progress"] * 5 + ["completed"]


def test_an_empty_text_has_no_piece() -> None:
    assert [word for word in words(events(response(EMPTY, CUSTOM))) if "delta" in word] == []


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["type"])
def test_the_pieces_add_up_without_the_whole(item: JsonObject) -> None:
    """As for a client that looks at neither `done` of the item nor the last event."""
    accumulator = Accumulator()
    for event in events(response(item)):
        if event["type"] not in ("response.output_item.done", "response.completed"):
            accumulator.add(event)
    assert accumulator.output("completed") == [item]


@pytest.mark.parametrize(
    ("status", "last"),
    [
        ("completed", "completed"),
        ("incomplete", "incomplete"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("in_progress", "failed"),
    ],
)
def test_the_last_event_tells_how_it_ended(status: str, last: str) -> None:
    whole = response(MESSAGE, status=status)
    first, *_, terminal = restream_response(whole)
    assert (terminal["type"], terminal["response"]) == (f"response.{last}", whole)
    assert (first["response"]["status"], first["response"]["output"], first["response"]["usage"]) == (
        "in_progress",
        [],
        None,
    )
