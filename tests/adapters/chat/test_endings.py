"""T47: a finish reason that stands beside the last piece comes after it: clients that stop there would lose it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext

STREAM = Path(__file__).parent / "fixtures/streams/openai_ending_beside.sse"
"""As vLLM writes the end of a call (vllm-project/vllm-ascend#8327)."""


def read(ctx: Context, data: bytes) -> list[Output]:
    return dialects["openai"].called["chat"].read_stream(ctx).receive(data)


def choices(ctx: Context, *bodies: JsonObject) -> list[list[JsonValue]]:
    """The choices of the chunks that come of these."""
    reader = dialects["openai"].called["chat"].read_stream(ctx)
    outputs = [output for body in bodies for output in reader.receive(encode(orjson.dumps(body)))] + reader.close()
    return [output.body["choices"] for output in outputs if isinstance(output, Chunk)]


def chunk(*told: JsonObject, **more: JsonValue) -> JsonObject:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list(told), **more}


@pytest.mark.parametrize("replies", ["repair", "strict"])
def test_a_call_ends_in_a_chunk_of_its_own(replies: str, context: MakeContext) -> None:
    ctx = context(policy={"replies": replies}, request={"stream_options": {"include_usage": True}})
    *_, last, ending, end = read(ctx, STREAM.read_bytes())
    assert isinstance(last, Chunk) and isinstance(ending, Chunk) and isinstance(end, End)
    (piece,), (choice,) = last.body["choices"], ending.body["choices"]
    assert (piece["finish_reason"], piece["delta"]["tool_calls"][0]["function"]["arguments"]) == (None, '"Paris"}')
    assert choice == {"index": 0, "delta": {}, "finish_reason": "tool_calls", "stop_reason": None, "token_ids": None}
    assert {key: ending.body[key] for key in ("id", "model", "usage")} == {
        "id": "chatcmpl-8f1",
        "model": "glm-5",
        "usage": None,
    }
    assert "chunk of its own" in ctx.receipt.changes[-1].reason


def test_what_is_left_as_it_came_is(context: MakeContext) -> None:
    *_, last, end = read(context(policy={"replies": "off"}), STREAM.read_bytes())
    assert isinstance(last, Chunk) and isinstance(end, End)
    assert last.body["choices"][0]["finish_reason"] == "tool_calls"
    assert last.raw is not None and last.raw in STREAM.read_bytes()


def test_the_text_keeps_its_log_probabilities_and_the_ending_its_native_word(context: MakeContext) -> None:
    logprobs = {"content": [{"token": "hi", "logprob": -1.0, "bytes": [104, 105], "top_logprobs": []}], "refusal": None}
    told = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": "tired", "logprobs": logprobs}
    (piece,), (ending,) = choices(context(), chunk(told))
    assert (piece["logprobs"], piece["finish_reason"], "native_finish_reason" in piece) == (logprobs, None, False)
    assert (ending["delta"], ending["finish_reason"], ending["native_finish_reason"]) == ({}, "stop", "tired")
    assert "logprobs" not in ending


def test_the_choices_that_end_come_apart_from_what_is_still_said(context: MakeContext) -> None:
    texts = ({"index": index, "delta": {"content": "a"}, "finish_reason": None} for index in range(3))
    last = [
        {"index": 0, "delta": {"content": "b"}, "finish_reason": "length"},
        {"index": 1, "delta": {"content": ""}, "finish_reason": "stop"},
        {"index": 2, "delta": {"content": "b"}, "finish_reason": None},
    ]
    _, told, ended = choices(context(), chunk(*texts), chunk(*last))
    assert [(one["index"], one["delta"]["content"]) for one in told] == [(0, "b"), (2, "b")]
    assert [(one["index"], one["finish_reason"]) for one in ended] == [(0, "length"), (1, "stop")]


@pytest.mark.parametrize("delta", [{}, {"content": ""}, {"content": None}, {"role": "assistant", "content": ""}])
def test_an_ending_that_says_nothing_else_stays_whole(delta: JsonObject, context: MakeContext) -> None:
    first = {"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": None}
    assert len(choices(context(), chunk(first), chunk({"index": 0, "delta": delta, "finish_reason": "stop"}))) == 2


def test_another_finish_reason_of_a_choice_whose_end_was_sent_is_a_loss(context: MakeContext) -> None:
    ctx = context()
    ends = [{"index": index, "delta": {}, "finish_reason": word} for index, word in ((0, "length"), (1, "length"))]
    again = [{"index": 0, "delta": {}, "finish_reason": word} for word in ("length", "stop")]
    made = choices(ctx, *(chunk(one) for one in (*ends, *again)))
    assert [(one["index"], one["finish_reason"]) for (one,) in made] == [(0, "length"), (1, "length")]
    assert [change.reason for change in ctx.receipt.losses] == [
        "a choice ends with 'length' and with 'stop': the first has been sent"
    ]
