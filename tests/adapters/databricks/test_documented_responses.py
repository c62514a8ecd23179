"""Databricks' Responses as its reference describes it: what is taken, what is refused and how, and what comes back."""

from __future__ import annotations

from typing import Literal

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.databricks.function_blocks import pack_output_item
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

DATABRICKS = dialects["databricks"]
SERVED = DATABRICKS.served["responses"]
PATH = "/serving-endpoints/responses"
SCHEMA = {"type": "object", "properties": {}}
NESTED_TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}}
FLAT_TOOL = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
NESTED_FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}


def context(body: JsonObject | None = None, path: str = PATH) -> Context:
    target = Target("upstream", "documented")
    return Context("documented", Call("POST", path, body or {}), Receipt(), target, clock=lambda: 1.0)


def read(body: JsonObject, path: str = PATH) -> tuple[JsonObject, Context]:
    whole = {"model": "gpt", "input": "hello", **body}
    ctx = context({key: value for key, value in whole.items() if value is not ...}, path)
    hub = SERVED.read_request(ctx.call, ctx)
    assert [v.message for v in load_validator("hub/responses.request").violations(hub)] == []
    return hub, ctx


def refused(body: JsonObject, path: str = PATH) -> Reply:
    with pytest.raises(Fault) as caught:
        read(body, path)
    reply = SERVED.write_fault(caught.value, context())
    assert [v.message for v in load_validator("databricks/responses.error").violations(reply.body)] == []
    return reply


FORBIDDEN = {"background": False, "store": True, "conversation": "c", "service_tier": "auto"}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_four_parameters_are_refused_by_name(name: str) -> None:
    reply = refused({name: FORBIDDEN[name]})
    assert reply.status == 400
    assert reply.body["error_code"] == "INVALID_PARAMETER_VALUE"
    assert name in reply.body["message"]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_null_is_presence(name: str) -> None:
    assert name in refused({name: None}).body["message"]


def test_nested_forms_go_flat_to_openai() -> None:
    choice = {"type": "function", "function": {"name": "f"}}
    hub, ctx = read({"text": {"format": NESTED_FORMAT}, "tools": [NESTED_TOOL], "tool_choice": choice})
    call = dialects["openai"].called["responses"].write_request(hub, ctx._replace(request=hub))
    assert call.body["text"] == {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
    assert call.body["tools"] == [FLAT_TOOL]
    assert call.body["tool_choice"] == {"type": "function", "name": "f"}
    assert load_validator("openai/responses.request").accepts(call.body)
    assert ctx.receipt.header() is None
    assert ctx.receipt.unmap(("tools", 0, "parameters")) == ("tools", 0, "function", "parameters")
    assert ctx.receipt.unmap(("text", "format", "schema")) == ("text", "format", "json_schema", "schema")


def test_flat_forms_are_refused() -> None:
    body = {"tools": [FLAT_TOOL], "tool_choice": {"type": "function", "name": "f"}}
    assert "tools[0]" in refused(body).body["message"]


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": {"a": 1}}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": {"b": 2}}
SAID = {"type": "output_text", "text": "wait"}
BLOCKS = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [SAID, CALL, {**SAID, "text": "still"}]},
    {"role": "user", "content": [OUTPUT, {"type": "input_text", "text": "and?"}]},
]


def test_blocks_of_functions_become_items() -> None:
    hub, ctx = read({"input": BLOCKS})
    assert hub["input"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [SAID]},
        {**CALL, "arguments": '{"a":1}'},
        {"role": "assistant", "content": [{**SAID, "text": "still"}]},
        {**OUTPUT, "output": '{"b":2}'},
        {"role": "user", "content": [{"type": "input_text", "text": "and?"}]},
    ]
    places = {
        ("input", 1, "content", 0, "text"): ("input", 1, "content", 0, "text"),
        ("input", 2, "name"): ("input", 1, "content", 1, "name"),
        ("input", 3, "content", 0, "text"): ("input", 1, "content", 2, "text"),
        ("input", 4, "call_id"): ("input", 2, "content", 0, "call_id"),
        ("input", 5, "role"): ("input", 2, "role"),
        ("input", 5, "content", 0): ("input", 2, "content", 1),
    }
    assert {place: ctx.receipt.unmap(place) for place in places} == places


def test_items_of_functions_are_accepted_too() -> None:
    hub, ctx = read({"input": [{"role": "user", "content": "go"}, CALL, {**OUTPUT, "id": "o"}]})
    assert [item.get("type") for item in hub["input"]] == [None, "function_call", "function_call_output"]
    assert [change.action for change in ctx.receipt.changes] == ["converted", "converted"]


def test_toward_a_provider_they_are_blocks_with_ids() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "sealed"}
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    parts = [{"type": "input_text", "text": text} for text in "xy"]
    items = [
        {"role": "user", "content": "go"},
        thought,
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": parts},
        refusal,
    ]
    request = {"model": "m", "input": items}
    ctx = Context("documented", Call("POST", "/v1/responses", request), Receipt(), Target("m", "documented"), request)
    call = DATABRICKS.called["responses"].write_request(request, ctx)
    assert load_validator("databricks/responses.request").accepts(call.body)
    block = {"type": "function_call", "id": "c1", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert call.body["input"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [{"type": "function_call_output", "call_id": "c1", "output": "xy"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "no", "annotations": []}]},
    ]
    assert call.body["reasoning"] == {"encrypted_content": "sealed"}
    assert ctx.receipt.unmap(("input", 1, "content", 0, "name")) == ("input", 2, "name")
    assert ctx.receipt.unmap(("reasoning", "encrypted_content")) == ("input", 1, "encrypted_content")


def test_blocks_and_encrypted_reasoning_reach_a_provider_unchanged() -> None:
    sealed = {"effort": "low", "encrypted_content": "sealed"}
    items = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{**CALL, "arguments": "{}"}]},
        {"role": "user", "content": [{**OUTPUT, "output": "x"}]},
    ]
    hub, ctx = read({"input": items, "reasoning": sealed})
    assert [item.get("type") for item in hub["input"]] == [None, "reasoning", "function_call", "function_call_output"]
    assert ctx.receipt.unmap(("input", 1, "encrypted_content")) == ("reasoning", "encrypted_content")
    assert ctx.receipt.unmap(("input", 2, "name")) == ("input", 1, "content", 0, "name")
    target = Target("m", "documented")
    call = DATABRICKS.called["responses"].write_request(hub, ctx._replace(profile="documented", target=target))
    assert (call.body["input"], call.body["reasoning"]) == (items, sealed)


def test_encrypted_reasoning_with_a_text_input() -> None:
    hub, ctx = read({"reasoning": {"encrypted_content": "s"}})
    assert [item.get("type") for item in hub["input"]] == ["reasoning", None]
    assert ctx.receipt.unmap(("input", 1, "content")) == ("input",)
    assert read({"reasoning": {"encrypted_content": None}})[0]["input"] == "hello"


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_only_users_and_assistants_speak(role: str) -> None:
    reply = refused({"input": [{"role": "user", "content": "x"}, {"role": role, "content": "y"}]})
    assert "input[1].role must be one of user, assistant" in reply.body["message"]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("temperature", [0, 2, None], [2.01, -0.1]),
        ("top_p", [0.01, 1], [0, 1.01]),
        ("max_output_tokens", [None, 1], [0, 1.5]),
        ("max_tool_calls", [None, 1], [0]),
        ("top_logprobs", [0, 20], [21, -1]),
        ("input", ["x", []], [None, 1, ...]),
        ("model", ["m"], ["", ...]),
        ("metadata", [{}, None], [{str(i): "v" for i in range(17)}]),
    ],
)
def test_ranges(field: str, good: list[JsonValue], bad: list[JsonValue]) -> None:
    for value in good:
        read({field: value})
    for value in bad:
        reply = refused({field: value})
        assert (reply.status, reply.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
        assert field in reply.body["message"]


def test_hostile_schemas_are_refused_where_they_stand() -> None:
    far = {"type": "object", "$ref": "http://example.com/x"}
    tool = {"type": "function", "function": {"name": "f", "parameters": far}}
    assert "tools[0].function.parameters" in refused({"tools": [tool]}).body["message"]
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": far}}
    assert "text.format.json_schema.schema" in refused({"text": {"format": form}}).body["message"]
    assert refused({"api_key": "x"}).body["error_code"] == "BAD_REQUEST"


def test_the_address_names_the_model() -> None:
    path = "/serving-endpoints/my%20gpt/invocations"
    assert read({"model": "other"}, path)[0]["model"] == "my gpt"
    assert "model is required" in refused({"model": ...}, path).body["message"]


def test_usage_options_stay_here() -> None:
    assert read({"stream": True, "stream_options": {"include_usage": True}})[0]["stream_options"] is None
    assert "stream_options" in refused({"stream_options": {"include_usage": True}}).body["message"]


USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 21,
}
TEXT = {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
CALLED = {**CALL, "arguments": "{}", "status": "completed"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "status": "completed"}


def response(request: JsonObject, *output: JsonObject, **other: JsonValue) -> JsonObject:
    """As the hub has it: whole, and flat."""
    body = {"id": "resp_1", "status": "completed", "output": list(output), "usage": USAGE, **other}
    hub, ctx = read(request)
    reply = Reply(200, {"object": "response", "created_at": 1, "model": "m", **body})
    return dialects["openai"].called["responses"].read_reply(reply, ctx._replace(request=hub))


def written(hub: JsonObject, request: JsonObject | None = None) -> tuple[JsonObject, Context]:
    ctx = context(request)
    body = SERVED.write_reply(hub, ctx).body
    assert [v.message for v in load_validator("databricks/responses.reply").violations(body)] == []
    return body, ctx


DOCUMENTED = set(load_validator("databricks/responses.reply").known)
ASKED = {
    "tools": [NESTED_TOOL],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "text": {"format": NESTED_FORMAT},
    "instructions": "be brief",
    "max_output_tokens": 7,
    "metadata": {"k": "v"},
}


def test_every_documented_key_is_there() -> None:
    body, _ = written(response(ASKED, MESSAGE), ASKED)
    assert body.keys() >= DOCUMENTED
    assert (body["id"], body["object"], body["status"]) == ("resp_1", "response", "completed")
    assert (body["error"], body["incomplete_details"]) == (None, None)
    assert [item["type"] for item in body["output"]] == ["message"]
    told = {name: body[name] for name in ASKED if name in DOCUMENTED}
    assert told == {name: ASKED[name] for name in told}
    assert (body["temperature"], body["top_p"], body["parallel_tool_calls"]) == (1.0, 1.0, True)
    counts = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "reasoning_tokens": 4}
    assert body["usage"] == counts


def test_there_is_no_other_key() -> None:
    body, ctx = written({**response(ASKED, MESSAGE), "x_unknown": 1}, ASKED)
    assert body.keys() == DOCUMENTED | {"x_unknown"}
    assert ctx.receipt.header() is None


def test_tools_are_told_as_the_client_wrote_them() -> None:
    hub = response(ASKED, MESSAGE)
    assert written(hub, ASKED)[0]["tools"] == ASKED["tools"]
    nested = written(hub)[0]
    assert (nested["tools"], nested["tool_choice"]) == ([NESTED_TOOL], ASKED["tool_choice"])


def test_output_holds_messages_only() -> None:
    refusal = {**MESSAGE, "content": [{"type": "refusal", "refusal": "no"}]}
    body, ctx = written(response({}, THOUGHT, MESSAGE, CALLED, refusal))
    block = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert [item["content"] for item in body["output"]] == [
        [TEXT],
        [block],
        [{"type": "output_text", "text": "no", "annotations": []}],
    ]
    assert 'path="output[0]"' in str(ctx.receipt.header())


def test_a_response_that_failed() -> None:
    hub = response({}, status="failed", error={"code": "REQUEST_LIMIT_EXCEEDED", "message": "slow down"})
    error = written(hub)[0]["error"]
    assert (error["code"], error["message"], error["type"]) == ("server_error", "slow down", "server_error")
    assert error["native_code"] == "REQUEST_LIMIT_EXCEEDED"


def test_replies_that_nobody_mended_pass() -> None:
    bare = {"output": [], "usage": {"prompt_tokens": 1}, "error": None}
    assert SERVED.write_reply(bare, context()).body == bare
    odd = [{"type": "message", "content": "x"}, {"type": "function_call", "call_id": "c", "name": "f"}, THOUGHT]
    first, second = SERVED.write_reply({"output": odd, "tools": None}, context()).body["output"]
    assert (first, second["content"][0]["id"]) == (odd[0], "c")
    assert SERVED.write_reply({"status": "failed"}, context()).body["output"] == []


def stream(hub: JsonObject, request: JsonObject | None = None, *, fault: bool = False) -> list[JsonObject]:
    writer = SERVED.write_stream(context(request))
    outputs = [Chunk(event) for event in restream_response(hub)]
    if fault:
        outputs[-1:] = []
    raw = b"".join(map(writer.write, outputs))
    raw += writer.write(Fault("upstream_timeout", "too slow")) if fault else writer.write(End())
    blocks = raw.decode().removesuffix("\n\n").split("\n\n")
    assert blocks.pop() == "data: [DONE]"
    events = [orjson.loads(block.split("\n")[1].removeprefix("data: ")) for block in blocks]
    assert [block.split("\n")[0] for block in blocks] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        assert [v.message for v in load_validator("databricks/responses.event").violations(event)] == []
    return events


def test_a_stream() -> None:
    refusal = {**MESSAGE, "id": "msg_2", "content": [{"type": "refusal", "refusal": "no"}]}
    hub = response(ASKED, THOUGHT, MESSAGE, CALLED, refusal)
    asked = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
    events = stream(hub, asked)
    whole, _ = written(hub, asked)
    assert events[-1]["response"] == whole
    done = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["item"] for event in done] == whole["output"]
    assert [event["output_index"] for event in done] == list(range(len(whole["output"])))
    words = {event["type"] for event in events}
    assert "response.refusal.delta" not in words
    text = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert text == ["hi", "no"]


def test_streams_report_usage_if_asked() -> None:
    hub = response({}, MESSAGE)
    assert stream(hub)[-1]["response"]["usage"] is None
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    assert stream(hub, asked)[-1]["response"]["usage"]["prompt_tokens"] == 9


def test_a_stream_that_fails() -> None:
    *_, error, failed = stream(response({}, MESSAGE), fault=True)
    assert (error["type"], error["error_code"], error["message"]) == ("error", "DEADLINE_EXCEEDED", "too slow")
    assert error["error"]["message"] == "too slow"
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"]["code"] == "server_error"
    assert [item["type"] for item in failed["response"]["output"]] == ["message"]


def called(
    body: JsonObject, replies: Literal["off", "report", "repair", "strict"] = "repair"
) -> tuple[JsonObject, Context]:
    target = Target("m", "documented", Policy(replies=replies))
    ctx = Context("documented", Call("POST", PATH, {}), Receipt(), target, {"model": "m", "input": "x"})
    reply = Reply(200, orjson.loads(orjson.dumps(body)), {})
    return DATABRICKS.called["responses"].read_reply(reply, ctx), ctx


@pytest.mark.parametrize("replies", ["repair", "strict"])
def test_what_is_served_is_read_back(replies: str) -> None:
    """A documented provider's tools are nested, and its calls stand in messages; the hub has neither."""
    wanted = response(ASKED, MESSAGE, CALLED)
    body, _ = written(wanted, ASKED)
    hub, ctx = called(body, replies)
    assert ctx.receipt.violations == 0
    assert [v.message for v in load_validator("hub/responses.reply").violations(hub)] == []
    assert (hub["output"], hub["tools"]) == (wanted["output"], wanted["tools"])
    assert hub["tool_choice"] == wanted["tool_choice"]


def test_what_is_streamed_is_read_back() -> None:
    wanted = response(ASKED, MESSAGE, CALLED)
    asked = {**ASKED, "stream_options": {"include_usage": True}}
    ctx = Context(
        "documented", Call("POST", PATH, {}), Receipt(), Target("m", "documented"), {"model": "m", "input": "x"}
    )
    reader = DATABRICKS.called["responses"].read_stream(ctx)
    outputs = [
        output
        for event in stream(wanted, asked)
        for output in reader.receive(encode(orjson.dumps(event), event["type"].encode()))
    ]
    assert isinstance(outputs[-1], End)
    events = [output.body for output in outputs[:-1] if isinstance(output, Chunk)]
    for event in events:
        assert [v.message for v in load_validator("hub/responses.event").violations(event)] == []
    assert events[-1]["response"]["output"] == wanted["output"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == wanted["output"]


def test_parts_of_any_shape_are_passed_on() -> None:
    """Under `off`, events come as the provider sent them."""
    refusal = {"type": "refusal", "refusal": "no"}
    item = {"type": "message", "content": [[], None, 3, "text", refusal]}
    made = pack_output_item(item)
    text = {"type": "output_text", "text": "no", "annotations": []}
    assert made == {"type": "message", "content": [[], None, 3, "text", text]}
