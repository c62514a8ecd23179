"""A message is held to its request, whole and as a stream."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.reply_check import create_reply_check
from dragoman.adapters.streams import Chunk, DeltaRun
from tests.tables import for_each

FORMAT: JsonObject = {"type": "json_schema", "schema": {"type": "object", "required": ["a"]}}


def message(*content: JsonObject, stop_reason: str = "end_turn", used: int = 5) -> JsonObject:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*content],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": used},
    }


def call(name: str) -> JsonObject:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


ONE_CALL = {"type": "auto", "disable_parallel_tool_use": True}

MISMATCHES: list[tuple[JsonObject, JsonObject, tuple[str, ...]]] = [
    ({"tool_choice": {"type": "any"}}, message(text("no")), ("tool_choice",)),
    ({"tool_choice": {"type": "tool", "name": "f"}}, message(call("g")), ("tool_choice",)),
    ({"tool_choice": {"type": "none"}}, message(call("g")), ("tool_choice",)),
    ({"tool_choice": ONE_CALL}, message(call("f"), call("g")), ("tool_choice", "disable_parallel_tool_use")),
    ({"output_config": {"format": FORMAT}}, message(text("no")), ("output_config", "format")),
    ({"output_config": {"format": FORMAT}}, message(text("{}")), ("output_config", "format")),
    ({"output_format": FORMAT}, message(text("no")), ("output_config", "format")),
    ({"stop_sequences": ["END"]}, message(text("the END"), text("is near")), ("stop_sequences",)),
    ({"max_tokens": 4}, message(text("x")), ("max_tokens",)),
]

MATCHES: list[tuple[JsonObject, JsonObject]] = [
    ({"tool_choice": {"type": "any"}}, message(call("f"))),
    ({"tool_choice": {"type": "any"}}, message(text("x"), stop_reason="max_tokens")),
    ({"tool_choice": {"type": "tool", "name": "f"}}, message(call("f"), call("g"))),
    ({"tool_choice": {"type": "none"}}, message(text("x"))),
    ({"tool_choice": ONE_CALL}, message(call("f"))),
    ({"output_config": {"format": FORMAT}}, message(text('{"a"'), text(": 1}"))),
    ({"output_config": {"format": FORMAT}}, message(text("x"), stop_reason="refusal")),
    ({"output_config": {"effort": "low"}}, message(text("x"))),
    ({"stop_sequences": ["END"]}, message(text("the "), text("beginning"))),
    ({"max_tokens": 5, "tool_choice": None}, message(text("x"))),
]


def find_paths(request: JsonObject, reply: JsonObject, way: str) -> list[tuple[str | int, ...]]:
    check = create_reply_check("messages", request, "strict")
    assert check is not None
    if way == "whole":
        check.add_reply(reply)
    else:
        for event in restream_message(reply):
            delta = event.get("delta", {})
            if way == "runs" and delta.get("type") == "text_delta":
                check.add_run(DeltaRun(event, ("delta", "text"), [delta["text"].replace('"', '\\"').encode()]))
            else:
                check.add_outputs([Chunk(event)])
    return [one.path for one in check.find_mismatches()]


@for_each("way", ["whole", "events", "runs"])
@for_each(("request_", "reply", "path"), MISMATCHES)
def test_what_was_not_asked_for_is_found(
    request_: JsonObject, reply: JsonObject, path: tuple[str, ...], way: str
) -> None:
    assert find_paths(request_, reply, way) == [path]


@for_each("way", ["whole", "events", "runs"])
@for_each(("request_", "reply"), MATCHES)
def test_what_was_asked_for_is_no_mismatch(request_: JsonObject, reply: JsonObject, way: str) -> None:
    assert find_paths(request_, reply, way) == []


def test_a_request_that_asks_for_nothing_is_not_checked() -> None:
    assert create_reply_check("messages", {"model": "m", "messages": []}, "strict") is None
    assert create_reply_check("messages", {"max_tokens": 1}, "off") is None
