"""The verbs of chat over every dialect: requests, whole replies and streams."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import lookup
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext

FIXTURES = Path(__file__).parent / "fixtures"
HELLO = [{"role": "user", "content": "hello"}]


def write(dialect: str, ctx: Context) -> Call:
    return dialects[dialect].called["chat"].write_request(ctx.request, ctx)


def read(dialect: str, ctx: Context, body: JsonValue) -> JsonObject:
    reply = Reply(200, body, {"content-type": "application/json"}, orjson.dumps(body))
    return dialects[dialect].called["chat"].read_reply(reply, ctx)


def completion(finish: str, content: JsonValue = "hi", **choice: JsonValue) -> JsonObject:
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion",
        "created": 1677652288,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish, **choice}
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    }


def request(**fields: JsonValue) -> JsonObject:
    return {"model": "public", "messages": HELLO, **fields}


def test_databricks_gets_one_system_message_first_and_no_model(context: MakeContext) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "system", "content": "s"}, {"role": "user", "content": "b"}]
    ctx = context(request=request(messages=messages), model="databricks-meta-llama-3-3-70b-instruct")
    call = write("databricks", ctx)
    assert call.path == "/serving-endpoints/databricks-meta-llama-3-3-70b-instruct/invocations"
    assert [(m["role"], m["content"]) for m in call.body["messages"]] == [("system", "s"), ("user", "a"), ("user", "b")]
    assert "model" not in call.body
    assert ctx.receipt.header() is None


def test_azure_gets_a_list_of_stop_strings_a_version_and_the_deployment(context: MakeContext) -> None:
    ctx = context(request=request(stop="END"), api_version="2024-05-01-preview", deployment="blue")
    call = write("azure", ctx)
    assert call.body["stop"] == ["END"]
    assert call.query == {"api-version": "2024-05-01-preview"}
    assert call.headers == {"azureml-model-deployment": "blue"}
    assert ctx.receipt.unmap(("stop", 0)) == ("stop",)


def test_mindie_gets_its_own_names_and_the_header_names_what_was_dropped(context: MakeContext) -> None:
    ctx = context(
        request=request(
            messages=[{"role": "developer", "content": "d"}, *HELLO],
            max_completion_tokens=50,
            stream=True,
            stream_options={"include_usage": True},
            parallel_tool_calls=False,
            tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        ),
        policy={"unsupported": "drop"},
    )
    body = write("mindie", ctx).body
    assert body["max_tokens"] == 50
    assert body["messages"][0]["role"] == "system"
    assert body.keys().isdisjoint({"max_completion_tokens", "stream_options", "parallel_tool_calls"})
    assert 'path="parallel_tool_calls"' in (ctx.receipt.header() or "")


def test_parallel_tool_calls_off_is_refused_by_default(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("mindie", context(request=request(parallel_tool_calls=False)))
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", "parallel_tool_calls")


def test_a_schema_error_names_the_missing_key(context: MakeContext) -> None:
    ctx = context()
    call = Call("POST", "/v1/chat/completions", request(response_format={"type": "json_schema"}))
    served = dialects["openai"].served["chat"]
    with pytest.raises(Fault) as caught:
        served.read_request(call, ctx)
    reply = served.write_fault(caught.value, ctx)
    assert reply.status == 400
    assert reply.body["error"]["param"] == "response_format.json_schema"
    assert reply.body["error"]["type"] == "invalid_request_error"


def test_mindie_eos_token_reads_stop(context: MakeContext) -> None:
    body = orjson.loads((FIXTURES / "mindie_reply.json").read_bytes())
    reply = read("mindie", context("documented"), body)
    choice = reply["choices"][0]
    assert reply["object"] == "chat.completion"
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "\n\nHello there, how may I assist you today?"
    assert "tool_calls" not in choice["message"]


def test_an_empty_list_of_tool_calls_is_left_out(context: MakeContext) -> None:
    body = completion("stop")
    body["choices"][0]["message"]["tool_calls"] = []
    assert "tool_calls" not in read("mindie", context(), body)["choices"][0]["message"]


@pytest.mark.parametrize("content", ["", "partial"])
def test_mindie_stop_sequence_is_a_failure(context: MakeContext, content: str) -> None:
    for profile in ("documented", "actual"):
        with pytest.raises(Fault) as caught:
            read("mindie", context(profile), completion("stop_sequence", content, err_msg="engine died"))
        assert caught.value.status == 502
        assert "engine died" in caught.value.message
    reply = dialects["openai"].served["chat"].write_fault(caught.value, context())
    assert reply.status == 502
    assert reply.body["error"]["type"] == "server_error"


def test_stop_sequence_is_a_stop_where_stop_strings_were_asked_for(context: MakeContext) -> None:
    asked = request(stop=["END"])
    reply = read("mindie", context("actual", asked), completion("stop_sequence", "partial"))
    assert reply["choices"][0]["finish_reason"] == "stop"
    with pytest.raises(Fault):
        read("mindie", context("documented", asked), completion("stop_sequence", "partial"))


def test_invalid_flag_is_a_failure_when_strict_else_a_recorded_stop(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        read("mindie", context("documented", policy={"replies": "strict"}), completion("invalid flag"))
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_finish_reason")
    ctx = context("documented")
    reply = read("mindie", ctx, completion("invalid flag"))
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert "finish reason 'invalid flag' reads 'stop'" in [change.reason for change in ctx.receipt.changes]


def test_databricks_plural_object_is_corrected_and_extra_fields_are_kept(context: MakeContext) -> None:
    extra = '{"safetyRating": "low"}'
    body = completion("stop", extra_fields=extra) | {"object": "chat.completions"}
    reply = read("databricks", context("documented"), body)
    assert reply["object"] == "chat.completion"
    assert reply["choices"][0]["extra_fields"] == extra


def test_databricks_reasoning_blocks_become_reasoning_content(context: MakeContext) -> None:
    summary = {"type": "summary_text", "text": "thinking", "signature": "sig"}
    content = [{"type": "reasoning", "summary": [summary]}, {"type": "text", "text": "answer"}]
    body = completion("stop", content)
    body["usage"]["reasoning_tokens"] = 7
    reply = read("databricks", context(), body)
    message = reply["choices"][0]["message"]
    assert message["content"] == "answer"
    assert message["reasoning_content"] == "thinking"
    assert message["reasoning_signature"] == "sig"
    assert reply["usage"]["completion_tokens_details"] == {"reasoning_tokens": 7}


def test_signed_reasoning_goes_back_to_databricks_as_it_came(context: MakeContext) -> None:
    history = [
        *HELLO,
        {"role": "assistant", "content": "answer", "reasoning_content": "thinking", "reasoning_signature": "sig"},
        {"role": "user", "content": "go on"},
    ]
    body = write("databricks", context(request=request(messages=history))).body
    summary = {"type": "summary_text", "text": "thinking", "signature": "sig"}
    assert body["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "reasoning", "summary": [summary]}, {"type": "text", "text": "answer"}],
    }


def stream(dialect: str, ctx: Context, raw: bytes) -> list[Output]:
    reader = dialects[dialect].called["chat"].read_stream(ctx)
    return [*expand(reader.receive(raw)), *reader.close()]


def test_the_mindie_stream_has_one_role_one_id_one_created_and_one_end(context: MakeContext) -> None:
    ctx = context("documented", request(stream=True))
    outputs = stream("mindie", ctx, (FIXTURES / "mindie_stream.sse").read_bytes())
    chunks = [output.body for output in outputs[:-1]]
    assert isinstance(outputs[-1], End)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant"]
    assert "".join(delta.get("content", "") for delta in deltas) == (
        "am a Frenchman living in the UK. I am a keen photographer and I have been"
    )
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
    writer = dialects["openai"].served["chat"].write_stream(ctx)
    written = b"".join(writer.write(output) for output in outputs)
    assert written.count(b"data: [DONE]") == 1


def test_bare_text_in_a_stream_is_an_error_event_without_done(context: MakeContext) -> None:
    raw = (FIXTURES / "mindie_stream.sse").read_bytes().split(b"\n\n")
    broken = b"\n\n".join(raw[:5]) + b"\n\nEngine callback timeout: server tokenTimeout"
    ctx = context("documented", request(stream=True))
    outputs = stream("mindie", ctx, broken)
    assert isinstance(outputs[-1], Fault)
    assert all(isinstance(output, Chunk) for output in outputs[:-1])
    writer = dialects["openai"].served["chat"].write_stream(ctx)
    events = b"".join(writer.write(output) for output in outputs).split(b"\n\n")
    last = orjson.loads(events[-2].removeprefix(b"data: "))
    assert last["error"]["code"] == "upstream_timeout"
    assert b"data: [DONE]" not in events


@pytest.mark.parametrize("dialect", ["databricks", "azure", "mindie"])
@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "refusal": "I won't"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I won't"}]},
    ],
)
def test_a_replayed_refusal_is_what_the_assistant_said(dialect: str, message: JsonObject, context: MakeContext) -> None:
    ctx = context(request=request(messages=[*HELLO, message, *HELLO]))
    assert write(dialect, ctx).body["messages"][1] == {"role": "assistant", "content": "I won't"}
    assert ctx.receipt.header() is None
    path = ctx.receipt.unmap(("messages", 1, "content"))
    assert lookup(ctx.request, path) is not None


def test_thinking_switches_that_are_no_object_are_refused_not_a_crash(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("mindie", context(request=request(chat_template_kwargs=5, reasoning_effort="low")))
    assert caught.value.param in ("chat_template_kwargs", "reasoning_effort")


@pytest.mark.parametrize("dialect", ["databricks", "azure"])
def test_a_detail_that_only_advises_is_left_out(dialect: str, context: MakeContext) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a", "detail": "original"}}
    ctx = context(request=request(messages=[{"role": "user", "content": [image]}]))
    body = write(dialect, ctx).body
    assert body["messages"][0]["content"] == [{"type": "image_url", "image_url": {"url": "https://example.com/a"}}]
    assert "detail" in (ctx.receipt.header() or "")


def test_mindie_takes_no_list_of_types(context: MakeContext) -> None:
    schema = {"type": "object", "properties": {"type": {"type": ["string", "null"]}}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    with pytest.raises(Fault) as caught:
        write("mindie", context(request=request(response_format=form)))
    assert caught.value.param == "response_format.json_schema.schema.properties.type.type"


@pytest.mark.parametrize("given", [{}, {"stream": None}])
@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_toward_databricks_stream_is_always_said(given: JsonObject, profile: str, context: MakeContext) -> None:
    assert write("databricks", context(profile, request(**given))).body["stream"] is False


@pytest.mark.parametrize(("index", "created"), [({}, 1), ({"index": 0}, 1.0), ({"index": 0}, None)])
def test_whole_and_streamed_answers_get_the_same_envelope(
    index: JsonValue, created: JsonValue, context: MakeContext
) -> None:
    told = {"id": "", "created": created, "model": None}
    message = {"role": "assistant", "content": "a"}
    whole = {**told, "object": "x", "choices": [{**index, "message": message, "finish_reason": "stop"}]}
    reply = dialects["openai"].called["chat"].read_reply(Reply(200, whole), context("actual", request()))
    delta = {**index, "delta": message, "finish_reason": None}
    raw = b"data: " + orjson.dumps({**told, "object": "x", "choices": [delta]}) + b"\n\n"
    [chunk] = stream("openai", context("actual", request(stream=True)), raw)[:1]
    wanted = {"id": "chatcmpl-1", "created": 1 if created else 1_700_000_000, "model": "upstream-model"}
    for body in (reply, chunk.body):
        assert {key: body[key] for key in wanted} == wanted and type(body["created"]) is int
        assert body["choices"][0]["index"] == 0
    assert chunk.raw is None
