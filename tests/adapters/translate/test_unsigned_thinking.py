"""Thinking that its model does not sign has an empty signature in streams.

If none comes, AI SDK leaves the thinking out of the next request, and some providers refuse a turn with tool calls that
lacks it."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject

REQUEST: JsonObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def translate(*deltas: JsonObject) -> list[JsonObject]:
    """The events that are about the first block."""
    ctx = Context("actual", Call("POST", "/v1/messages", {}), Receipt(), Target("m"), clock=lambda: 1.0)
    translator = BRIDGES["messages"][0].stream(REQUEST, ctx)
    outputs: list[Chunk | End] = []
    for delta, finish in [*((one, None) for one in deltas), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        outputs.append(Chunk(body))
    made = [one for output in [*outputs, End()] for one in translator.feed(output)]
    return [one.body for one in made if isinstance(one, Chunk) and one.body.get("index") == 0]


def list_signatures(events: list[JsonObject]) -> list[object]:
    assert events[-1]["type"] == "content_block_stop"
    assert all(event["type"] != "content_block_delta" or event["delta"] for event in events)
    return [event["delta"]["signature"] for event in events if "signature" in event.get("delta", {})]


@pytest.mark.parametrize("after", [[], [{"content": "hi"}]], ids=["the end", "a text"])
def test_an_empty_one_ends_the_block(after: list[JsonObject]) -> None:
    events = translate({"role": "assistant", "reasoning_content": "so"}, *after)
    assert list_signatures(events) == [""] and events[-2]["delta"]["type"] == "signature_delta"


def test_a_signature_comes_once() -> None:
    assert list_signatures(translate({"reasoning_content": "so"}, {"reasoning_signature": "S"}, {"content": "a"})) == [
        "S"
    ]


def test_a_text_has_none() -> None:
    assert list_signatures(translate({"content": "hi"})) == []


@pytest.mark.parametrize("signature", ["", "S"])
def test_a_stream_made_of_a_whole_message(signature: str) -> None:
    block = {"type": "thinking", "thinking": "so", "signature": signature}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
    events = restream_message({**message, "stop_reason": "end_turn", "stop_sequence": None})
    assert list_signatures([event for event in events if event.get("index") == 0]) == [signature]
