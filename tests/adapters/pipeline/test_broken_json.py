"""Whole replies whose JSON is broken in the ways of model servers are read, and the repairs are losses."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters.call import Policy

from .conftest import CreatePlan, ReceiveRequest
from .test_attempt import ASKED, fault_of, feed_whole, reply

LOGPROBS = b'"logprobs":{"content":[{"token":"a","bytes":null,"logprob":-Infinity,"top_logprobs":[]}],"refusal":null},'


@pytest.mark.parametrize("policy", ["off", "report", "repair", "strict"])
@pytest.mark.parametrize("half", [b"\\ud83d", b"\\ude00", b"\xff"])
def test_half_a_character_costs_no_reply(receive: ReceiveRequest, plan: CreatePlan, half: bytes, policy: str) -> None:
    replies = Policy(replies=policy)  # type: ignore[arg-type]
    attempt = receive("openai/chat", ASKED).prepare(plan(policy=replies))
    output = feed_whole(attempt, reply("he@llo").replace(b"@", half))
    assert json.loads(output.data)["choices"][0]["message"]["content"] == "he�llo"
    assert "U+FFFD" in attempt.headers["x-dragoman-changes"]


def test_a_number_that_json_does_not_have_costs_no_reply(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    output = feed_whole(attempt, reply("-Infinity").replace(b'"index":0,', b'"index":0,' + LOGPROBS))
    choice = json.loads(output.data)["choices"][0]
    assert (choice["message"]["content"], choice["logprobs"]["content"][0]["logprob"]) == ("-Infinity", -9999.0)


@pytest.mark.parametrize("number", ["123456789012345678901234", "-9223372036854775809", "18446744073709551616"])
def test_an_integer_that_loses_digits_is_a_loss(receive: ReceiveRequest, plan: CreatePlan, number: str) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    output = feed_whole(attempt, reply("hi").replace(b'"index":0,', b'"index":0,"x":%b,' % number.encode()))
    assert json.loads(output.data)["choices"][0]["x"] == float(number)
    assert "integers that do not fit in 64 bits" in attempt.headers["x-dragoman-changes"]


@pytest.mark.parametrize(
    "value", ["18446744073709551615", "-9223372036854775808", "0.1234567890123456789", '"1%s"' % ("0" * 30)]
)
def test_other_long_numbers_lose_nothing(receive: ReceiveRequest, plan: CreatePlan, value: str) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    output = feed_whole(attempt, reply("hi").replace(b'"index":0,', b'"index":0,"x":%b,' % value.encode()))
    assert json.loads(output.data)["choices"][0]["x"] == json.loads(value)
    assert "x-dragoman-changes" not in attempt.headers


def test_a_vector_with_a_number_that_is_none_stays_a_fault(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/embeddings", {"model": "m", "input": "x"}).prepare(plan("openai", "embeddings"))
    data = b'{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.1,NaN]}]}'
    feed_whole(attempt, data)
    assert fault_of(attempt).kind == "upstream_invalid_response"
