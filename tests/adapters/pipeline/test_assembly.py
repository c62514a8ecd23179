"""A stream assembled into one reply is the reply that it was made of."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.assembly import assemble_chat
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.completions.assembly import assemble_text
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.validation import load_validator

from .conftest import CreatePlan, ReceiveRequest
from .test_attempt import SSE

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
TEXTS = st.text(max_size=8)
CALLS = st.lists(
    st.builds(
        lambda number, name, text: {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": text},
        },
        st.integers(0, 9),
        st.sampled_from(["f", "g"]),
        TEXTS,
    ),
    min_size=1,
    max_size=3,
)
LOGPROBS: JsonObject = {
    "content": [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}],
    "refusal": None,
}
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | TEXTS, "refusal": st.none() | TEXTS},
    optional={"reasoning_content": TEXTS, "tool_calls": CALLS},
)
CHOICES = st.fixed_dictionaries(
    {
        "message": MESSAGES,
        "logprobs": st.sampled_from([None, LOGPROBS]),
        "finish_reason": st.sampled_from(["stop", "length"]),
    }
)


def number(choices: list[JsonObject]) -> list[JsonObject]:
    return [{"index": index, **choice} for index, choice in enumerate(choices)]


@given(st.lists(CHOICES, min_size=1, max_size=3))
def test_a_chat_reply_survives_being_streamed(choices: list[JsonObject]) -> None:
    reply: JsonObject = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "service_tier": "flex"}
    reply |= {"choices": number(choices), "usage": USAGE}
    assert assemble_chat(restream(reply, with_usage=True)) == reply


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_a_completions_reply_survives_being_streamed(texts: list[str]) -> None:
    logprobs = {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": None, "text_offset": [0]}
    choices = [{"text": text, "logprobs": logprobs, "finish_reason": "stop"} for text in texts]
    reply: JsonObject = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    reply |= {"choices": number(choices), "usage": USAGE}
    assert assemble_text(restream_text(reply, with_usage=True)) == reply


def test_pieces_are_joined() -> None:
    def chunk(delta: JsonObject, finish: str | None = None, **more: object) -> JsonObject:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    reply = assemble_chat(
        [
            chunk({"role": "assistant", "reasoning_content": "hm"}),
            chunk({"content": "he"}, logprobs=LOGPROBS),
            chunk({"content": "llo"}, logprobs=LOGPROBS),
            chunk({"tool_calls": [call]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
            chunk({}, "tool_calls", native_finish_reason="tool_use"),
        ]
    )
    (choice,) = reply["choices"]
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    assert choice["message"] == {
        "role": "assistant",
        "content": "hello",
        "refusal": None,
        "reasoning_content": "hm",
        "tool_calls": [call],
    }
    assert len(choice["logprobs"]["content"]) == 2
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("tool_calls", "tool_use")


COMPLETE = [
    ("chat", "openai_text"),
    ("chat", "openai_two_choices"),
    ("chat", "openai_parallel_tools"),
    ("chat", "databricks_tools"),
    ("chat", "databricks_reasoning"),
    ("chat", "azure_filters"),
    ("chat", "mindie_text"),
    ("completions", "openai_logprobs"),
    ("completions", "openai_vllm"),
    ("completions", "databricks_text"),
    ("responses", "openai_text"),
]


@pytest.mark.parametrize(("protocol", "name"), COMPLETE)
def test_a_recorded_stream_becomes_a_valid_reply(
    receive: ReceiveRequest, plan: CreatePlan, protocol: str, name: str
) -> None:
    stream = Path(__file__).parents[1] / protocol / "fixtures" / "streams" / f"{name}.sse"
    asked: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    if protocol != "chat":
        asked = {"model": "m", "prompt" if protocol == "completions" else "input": "hi"}
    attempt = receive(f"openai/{protocol}", asked).prepare(plan(name.partition("_")[0], protocol))
    attempt.start_reply(0, 200, SSE)
    data = attempt.feed(0, stream.read_bytes()).data or attempt.close(0).data
    assert attempt.outcome.state == "complete", attempt.outcome
    assert load_validator(f"hub/{protocol}.reply").accepts(orjson.loads(data))


def test_empty_lists_of_log_probabilities_stay_empty() -> None:
    choice = {"index": 0, "text": "hi", "logprobs": {"tokens": [], "text_offset": None}, "finish_reason": "stop"}
    made = assemble_text([{"id": "c", "created": 1, "model": "m", "choices": [choice]}])
    assert made["choices"][0]["logprobs"] == {"tokens": [], "text_offset": None}
