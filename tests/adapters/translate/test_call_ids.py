"""Ids of calls that are longer than a provider of Responses takes."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call
from dragoman.adapters.translate.requests import to_responses_request
from tests.adapters.conftest import MakeContext

LONG = "call_" + "x" * 1319  # openai/codex#14355
CALL = {"type": "function_call", "call_id": LONG, "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": LONG, "output": "done"}


@pytest.mark.parametrize("dialect", ["openai", "databricks"])
def test_a_long_id_is_shortened_in_the_call_and_in_its_result(context: MakeContext, dialect: str) -> None:
    request = {"model": "m", "input": [CALL, RESULT]}
    ctx = context(request=request)
    call, result = dialects[dialect].called["responses"].write_request(request, ctx).body["input"]
    assert call["call_id"] == result["call_id"] != LONG
    assert len(call["call_id"]) == 64 and call["call_id"].startswith("call_xxx")
    assert request["input"] == [CALL, RESULT], "the client's request was altered"
    places = [change.public()["before"] for change in ctx.receipt.changes if "digest" in change.reason]
    assert places == ["input[0].call_id", "input[1].call_id"]


def test_ids_that_begin_alike_stay_apart_and_short_ones_stay(context: MakeContext) -> None:
    items = [{**CALL, "call_id": LONG + end} for end in "ab"] + [{**CALL, "call_id": "y" * 64}]
    request = {"model": "m", "input": items}
    made = dialects["openai"].called["responses"].write_request(request, context(request=request)).body["input"]
    assert len({item["call_id"] for item in made}) == 3
    assert made[2]["call_id"] == "y" * 64


def test_a_client_may_send_back_the_long_id_of_another_server(context: MakeContext) -> None:
    body = {"model": "m", "input": [CALL, RESULT]}
    call = Call("POST", "/v1/responses", body)
    assert dialects["openai"].served["responses"].read_request(call, context(request=body)) == body


def test_long_ids_of_chat_reach_a_provider_of_responses(context: MakeContext) -> None:
    made = {"id": LONG, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": LONG, "content": "done"},
    ]
    ctx = context(request={"model": "m", "messages": messages})
    request = to_responses_request(ctx.request, ctx)
    sent = dialects["openai"].called["responses"].write_request(request, ctx).body["input"]
    assert {len(item["call_id"]) for item in sent if "call_id" in item} == {64}
    assert len({item["call_id"] for item in sent if "call_id" in item}) == 1
