"""Databricks passes Responses on to OpenAI: served and called in OpenAI's form, with Databricks' errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.dialect import Called
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output

SERVED, CALLED = dialects["databricks"].served["responses"], dialects["databricks"].called["responses"]
OPENAI = dialects["openai"].called["responses"]
PATH = "/serving-endpoints/responses"
SCHEMA = {"type": "object", "properties": {}}
BODY: JsonObject = {
    "model": "databricks-gpt-5",
    "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True},
        {"type": "custom", "name": "patch"},
        {"type": "web_search"},
    ],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
    "store": False,
    "service_tier": "auto",
    "max_output_tokens": 64,
}
RESPONSE: JsonObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5-2025-08-07",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "c",
            "name": "patch",
            "input": "x",
            "status": "completed",
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    ],
    "tools": BODY["tools"],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 21,
    },
}


def context(body: JsonObject, path: str = PATH, **policy: Any) -> Context:
    target = Target("databricks-gpt-5", dialect="databricks", policy=Policy(**policy))
    return Context("actual", Call("POST", path, body), Receipt(), target, body)


def reply() -> Reply:
    return Reply(200, orjson.loads(orjson.dumps(RESPONSE)))


def test_a_request_is_read_as_openais() -> None:
    ctx = context(BODY)
    assert SERVED.read_request(ctx.call, ctx) == BODY
    assert not ctx.receipt.changes


def test_the_address_may_name_the_endpoint() -> None:
    body = {key: value for key, value in BODY.items() if key != "model"}
    ctx = context(body, "/serving-endpoints/my%20gpt/invocations")
    assert SERVED.read_request(ctx.call, ctx) == {**body, "model": "my gpt"}


def test_nested_tools_are_refused_by_databricks_error() -> None:
    ctx = context({**BODY, "tools": [{"type": "function", "function": {"name": "f"}}]})
    with pytest.raises(Fault) as caught:
        SERVED.read_request(ctx.call, ctx)
    error = SERVED.write_fault(caught.value, ctx)
    assert (error.status, error.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "tools[0].name" in error.body["message"]


@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_reply_of_openai_passes_unchanged(replies: str) -> None:
    ctx = context(BODY, replies=replies)
    made = CALLED.read_reply(reply(), ctx)
    assert made == OPENAI.read_reply(reply(), context(BODY, replies=replies))
    assert [item["type"] for item in made["output"]] == ["reasoning", "custom_tool_call", "web_search_call"]
    assert not ctx.receipt.violations
    assert SERVED.write_reply(made, ctx).body is made


def read_stream(verbs: Called, events: list[JsonObject]) -> list[Output]:
    reader = verbs.read_stream(context(BODY)._replace(clock=lambda: 1.0, new_id=lambda prefix: f"{prefix}_1"))
    pieces = (encode(orjson.dumps(event), event["type"].encode()) for event in events)
    return [output for piece in pieces for output in reader.receive(piece)]


def test_a_stream_of_openai_passes_unchanged() -> None:
    ctx = context(BODY)
    hub = CALLED.read_reply(reply(), ctx)
    sent = list(restream_response(hub))
    outputs, wanted = (read_stream(verbs, sent) for verbs in (CALLED, OPENAI))
    assert outputs == wanted
    assert isinstance(outputs[-1], End)
    writer = SERVED.write_stream(ctx)
    blocks = b"".join(map(writer.write, outputs)).decode().removesuffix("\n\n").split("\n\n")
    assert blocks.pop() == "data: [DONE]"
    events = [orjson.loads(block.split("\n")[1].removeprefix("data: ")) for block in blocks]
    assert [event["type"] for event in events] == [event["type"] for event in sent]
    assert events[-1]["response"] == hub


def test_a_stream_that_fails_ends_with_databricks_error() -> None:
    writer = SERVED.write_stream(context(BODY))
    raw = b"".join(writer.write(Chunk(event)) for event in [*restream_response(RESPONSE)][:-1])
    raw += writer.write(Fault("upstream_timeout", "too slow"))
    *_, error, failed, done = raw.decode().removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]"
    told = orjson.loads(error.split("\n")[1].removeprefix("data: "))
    assert (told["type"], told["error_code"], told["message"]) == ("error", "DEADLINE_EXCEEDED", "too slow")
    assert failed.startswith("event: response.failed")


def test_ids_that_the_service_refuses_are_dropped() -> None:
    items = [{"role": "user", "content": "x"}, {"type": "reasoning", "id": "r" * 65, "summary": []}]
    ctx = context({"model": "m", "input": items})
    assert CALLED.write_request(ctx.request, ctx).body["input"][1] == {"type": "reasoning", "summary": []}
    assert [(change.before, change.weight) for change in ctx.receipt.changes] == [(("input", 1, "id"), "form")]
