"""Checks of Messages: streams, whole messages, and their errors."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.checks import REPLY_CHECKS
from dragoman.contract.exchange import Chunk, Response
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome

USAGE: JsonObject = {"input_tokens": 9, "output_tokens": 1}
START: JsonObject = {"type": "message_start", "message": {"id": "msg_1", "stop_reason": None, "usage": USAGE}}
TEXT: JsonObject = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
CALL_BLOCK: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
CALL: JsonObject = {"type": "content_block_start", "index": 1, "content_block": CALL_BLOCK}
END: JsonObject = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}
STOP: JsonObject = {"type": "message_stop"}
ERROR: JsonObject = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def delta(index: int, **fields: JsonValue) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def stop(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


COMPLETE = [
    START,
    TEXT,
    delta(0, type="text_delta", text="I "),
    delta(0, type="text_delta", text="look."),
    stop(0),
    CALL,
    delta(1, type="input_json_delta", partial_json='{"at": '),
    delta(1, type="input_json_delta", partial_json='"it"}'),
    stop(1),
    END,
    STOP,
]


def make_outcome(events: list[JsonObject], request: JsonObject | None = None) -> Outcome:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    response = Response(200, (("content-type", "text/event-stream"),), (Chunk(0.0, text.encode()),), None)
    return Outcome("openai", "documented", "messages", "m", request or {}, response)


def find_problems(check: str, events: list[JsonObject], arg: JsonValue = None) -> list[str]:
    return REPLY_CHECKS[check].find_problems(make_outcome(events), arg)


@pytest.mark.parametrize("check", ["one_terminal", "items_paired", "event_equals_type", "usage_adds_up", "no_done"])
def test_checks_accept_a_complete_stream(check: str) -> None:
    assert find_problems(check, COMPLETE) == []


def test_content_of_a_stream_is_that_of_the_whole_message() -> None:
    streamed = make_outcome(COMPLETE).content
    whole = {
        "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "I look."}, {**CALL_BLOCK, "input": {"at": "it"}}],
        "usage": {**USAGE, "output_tokens": 4},
    }
    response = Response(200, (("content-type", "application/json"),), (Chunk(0.0, json.dumps(whole).encode()),), None)
    content = Outcome("openai", "documented", "messages", "m", {}, response).content
    assert (streamed.texts, streamed.finishes) == (content.texts, content.finishes) == (["I look."], ["tool_use"])
    assert [json.loads(call.arguments) for call in streamed.calls] == [{"at": "it"}]
    assert [json.loads(call.arguments) for call in content.calls] == [{"at": "it"}]
    assert streamed.usages[-1] == content.usages[-1] == {"input_tokens": 9, "output_tokens": 4}


def test_call_without_input_has_an_empty_object() -> None:
    whole = {"stop_reason": "tool_use", "content": [CALL_BLOCK]}
    response = Response(200, (), (Chunk(0.0, json.dumps(whole).encode()),), None)
    [call] = Outcome("openai", "documented", "messages", "m", {}, response).content.calls
    assert call.arguments == "{}"


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([*COMPLETE[:-1]], "0 terminal events: none"),
        ([*COMPLETE, STOP], "2 terminal events: message_stop, message_stop"),
        ([*COMPLETE, ERROR], "2 terminal events: message_stop, error"),
        ([*COMPLETE, {"type": "ping"}], "ping comes after message_stop"),
    ],
)
def test_a_stream_has_one_terminal_event(events: list[JsonObject], problem: str) -> None:
    assert find_problems("one_terminal", events) == [problem]


@pytest.mark.parametrize(
    ("events", "problems"),
    [
        (
            [START, CALL, END, STOP],
            ["block 0 has the index 1", "message_delta inside a block", "the last block is never closed"],
        ),
        ([START, TEXT, CALL, stop(1), END], ["a block starts inside another one"]),
        (
            [START, TEXT, delta(1, type="text_delta", text="a"), stop(0), END],
            ["content_block_delta of block 1 inside another one"],
        ),
        (
            [START, TEXT, delta(0, type="input_json_delta"), stop(0), END],
            ["input_json_delta in a block of the type text"],
        ),
        ([START, stop(0), END], ["content_block_stop outside a block"]),
        ([TEXT, stop(0), START, END], ["message_start comes late"]),
        ([TEXT, stop(0), END], ["0 message_start"]),
        ([START, END, END], ["2 message_delta"]),
        ([START, TEXT, ERROR], []),
    ],
)
def test_blocks_come_one_after_the_other(events: list[JsonObject], problems: list[str]) -> None:
    assert find_problems("items_paired", events) == problems


def test_an_error_event_must_come_last() -> None:
    assert find_problems("error_event", [START, TEXT, ERROR]) == []
    assert find_problems("error_event", [START, ERROR, STOP]) == ["an event follows the error event"]
    assert find_problems("error_event", COMPLETE) == ["the stream has no error event"]


def test_usage_of_messages_has_no_total() -> None:
    assert find_problems("usage_is", COMPLETE, [9, 4, 13]) == []
    assert find_problems("usage_is", COMPLETE, [9, 4, 14]) == ["the tokens are [9, 4, 13], expected [9, 4, 14]"]


def test_arguments_are_checked_against_the_input_schema() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
    request: JsonObject = {"tools": [{"name": "look", "input_schema": schema}]}
    problems = REPLY_CHECKS["tool_args_json"].find_problems(make_outcome(COMPLETE, request), None)
    assert problems == ["look: 'it' is not of type 'integer'"]
