"""The verbs of Responses toward providers that speak it themselves."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import judge

SCHEMA = {"type": "object", "properties": {}}


def context(request: dict[str, Any], profile: str = "actual", **policy: Any) -> Context:
    target = Target("gpt", profile, Policy(**policy))
    return Context(profile, Call("POST", "/v1/responses", request), Receipt(), target, request)


def write(dialect: str, ctx: Context) -> Call:
    return dialects[dialect].called["responses"].write_request(ctx.request, ctx)


def read(dialect: str, body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    reply = Reply(200, body, {}, orjson.dumps(body))
    return dialects[dialect].called["responses"].read_reply(reply, context(request))


def test_v08_openai_to_databricks() -> None:
    ctx = context(
        {
            "model": "public",
            "instructions": "be brief",
            "input": [{"role": "system", "content": "in French"}, {"role": "user", "content": "x"}],
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
            "tool_choice": {"type": "function", "name": "f"},
            "store": False,
        }
    )
    call = write("databricks", ctx)
    assert call.path == "/serving-endpoints/responses"
    assert call.body["instructions"] == "be brief\n\nin French"
    assert call.body["input"] == [{"role": "user", "content": "x"}]
    described = {"name": "n", "schema": SCHEMA, "strict": True}
    assert call.body["text"]["format"] == {"type": "json_schema", "json_schema": described}
    function = {"name": "f", "description": "", "parameters": SCHEMA, "strict": True}
    assert call.body["tools"] == [{"type": "function", "function": function}]
    assert call.body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert call.body.keys().isdisjoint({"store", "background", "conversation", "service_tier"})
    assert judge("databricks/responses.request", "actual").ok(call.body)
    assert ctx.receipt.unmap(("input", 0, "content")) == ("input", 1, "content")
    assert ctx.receipt.header() is None


def test_databricks_gets_no_id_that_it_would_refuse() -> None:
    long = {"type": "function_call", "id": "f" * 65, "call_id": "c", "name": "f", "arguments": "{}"}
    body = write("databricks", context({"model": "m", "input": [{"role": "user", "content": "x"}, long]})).body
    assert "id" not in body["input"][1]


def test_openai_gets_what_the_client_wrote() -> None:
    request = {"model": "public", "input": "x", "store": True, "previous_response_id": "resp_1", "top_k": 5}
    call = write("openai", context(request))
    assert call.path == "/responses"
    assert call.body == {**request, "model": "gpt"}


@pytest.mark.parametrize("dialect", ["openai", "databricks"])
def test_a_bare_response_becomes_whole(dialect: str) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "reasoning_tokens": 4}
    part = {"type": "output_text", "text": "hi", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    body = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [message],
        "usage": usage,
    }
    made = read(dialect, body, {"model": "m", "input": "x", "temperature": 0.5})
    assert [v.message for v in judge("hub/responses.reply").violations(made)] == []
    assert made["temperature"] == 0.5
    assert made["usage"]["output_tokens_details"] == {"reasoning_tokens": 4}
    assert made["usage"]["input_tokens"] == 9


def test_an_error_where_a_response_should_be_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        read(
            "openai",
            {"error": {"message": "boom", "type": "server_error", "code": None, "param": None}},
            {"model": "m"},
        )
    assert "boom" in caught.value.message
