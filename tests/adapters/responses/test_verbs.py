"""The verbs of Responses toward providers that speak it themselves."""

from __future__ import annotations

import orjson
import pytest
from openai.types.responses import Response

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called

SCHEMA = {"type": "object", "properties": {}}


def context(request: JsonObject, profile: str = "actual", **policy: JsonValue) -> Context:
    target = Target("gpt", profile, Policy(**policy))
    return Context(profile, Call("POST", "/v1/responses", request), Receipt(), target, request)


def write(dialect: str, ctx: Context) -> Call:
    return dialects[dialect].called["responses"].write_request(ctx.request, ctx)


def read(dialect: str, body: JsonObject, request: JsonObject) -> JsonObject:
    reply = Reply(200, body, {}, orjson.dumps(body))
    return dialects[dialect].called["responses"].read_reply(reply, context(request))


@pytest.mark.parametrize("dialect", called("responses"))
def test_what_a_target_lacks(dialect: str) -> None:
    """Whether a value is neutral or advisory depends on the hub's schema of Responses, not on that of chat."""
    request = {"model": "m", "input": "x", "truncation": "disabled", "max_tool_calls": 3, "prompt": None}
    target = Target("gpt", "actual", Policy(), lacks=frozenset(request) - {"model", "input"})
    ctx = context(request)._replace(target=target)
    assert write(dialect, ctx).body.keys() - {"stream"} == {"model", "input"}
    with pytest.raises(Fault, match="prompt cannot be served"):
        write(dialect, ctx._replace(request={**request, "prompt": {"id": "p"}}))


@pytest.mark.parametrize("dialect", called("responses"))
def test_a_target_without_truncation_refuses_an_input_that_is_too_long(dialect: str) -> None:
    """It does not shorten it; the request may be sent, and the receipt says what is lost."""
    ctx = context({"model": "m", "input": "x", "truncation": "auto"})
    ctx = ctx._replace(target=Target("gpt", "actual", Policy(), lacks=frozenset({"truncation"})))
    assert "truncation" not in write(dialect, ctx).body
    assert [(change.action, change.before) for change in ctx.receipt.losses] == [("dropped", ("truncation",))]


def test_databricks_gets_what_an_openai_client_wrote() -> None:
    request = {
        "model": "public",
        "input": [
            {"role": "system", "content": "in French"},
            {"role": "user", "content": "x"},
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        ],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
        "tools": [
            {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True},
            {
                "type": "custom",
                "name": "patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
            },
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "reasoning": {"effort": "minimal", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "store": False,
        "stream": True,
    }
    ctx = context(request)
    call = write("databricks", ctx)
    assert call.path == "/serving-endpoints/responses"
    assert call.body == {**request, "model": "gpt"}
    assert not ctx.receipt.changes


def test_documented_databricks_gets_what_an_openai_client_asked_in_its_own_form() -> None:
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
    call = write("databricks", ctx._replace(profile="documented"))
    assert call.path == "/serving-endpoints/gpt/invocations"
    assert call.body["instructions"] == "be brief\n\nin French"
    assert call.body["input"] == [{"role": "user", "content": "x"}]
    described = {"name": "n", "schema": SCHEMA, "strict": True}
    assert call.body["text"]["format"] == {"type": "json_schema", "json_schema": described}
    function = {"name": "f", "description": "", "parameters": SCHEMA, "strict": True}
    assert call.body["tools"] == [{"type": "function", "function": function}]
    assert call.body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert call.body.keys().isdisjoint({"store", "background", "conversation", "service_tier"})
    assert load_validator("databricks/responses.request").accepts(call.body)
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
    assert call.body == {**request, "model": "gpt", "stream": False}


@pytest.mark.parametrize("dialect", called("responses"))
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
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
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


BARE = {"id": "r", "object": "response", "created_at": 1, "model": "m"}


def test_items_are_filled() -> None:
    items = [
        {"type": "message", "content": "hi"},
        {"type": "function_call", "name": "f", "arguments": {"a": 1}, "call_id": "c"},
        {"type": "reasoning"},
    ]
    made = read("openai", {**BARE, "status": "completed", "output": items}, {"model": "m", "input": "x"})
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
    message, call, thought = made["output"]
    assert message["content"] == [{"type": "output_text", "text": "hi", "annotations": []}]
    assert (call["arguments"], thought["summary"]) == ('{"a":1}', [])
    assert [item["id"].partition("_")[0] for item in made["output"]] == ["msg", "fc", "rs"]


@pytest.mark.parametrize(
    ("error", "code", "native"),
    [
        ({"code": "server_error", "message": "m"}, "server_error", None),
        ({"code": "invalid_prompt", "message": "m"}, "invalid_prompt", None),
        ({"code": "InternalServerError", "message": "m"}, "server_error", "InternalServerError"),
        ({"code": 500, "message": None}, "server_error", "500"),
        ({"code": None, "message": "m"}, "server_error", None),
        ({}, "server_error", None),
        (None, "server_error", None),
    ],
)
def test_failures_are_in_the_words_of_openai(error: JsonObject | None, code: str, native: str | None) -> None:
    made = read("openai", {**BARE, "status": "failed", "output": [], "error": error}, {"model": "m", "input": "x"})
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
    assert (made["error"]["code"], made["error"].get("native_code")) == (code, native)
    assert made["error"]["message"]
    if error and error.get("message"):
        Response.model_validate(made)


@pytest.mark.parametrize(
    ("status", "told"), [("completed", "failed"), ("in_progress", "failed"), ("cancelled", "cancelled")]
)
def test_a_response_that_tells_of_an_error_has_failed(status: str, told: str) -> None:
    error = {"code": "server_error", "message": "boom"}
    made = read("openai", {**BARE, "status": status, "output": [], "error": error}, {"model": "m", "input": "x"})
    assert (made["status"], made["error"]) == (told, error)
    made = read("openai", {**BARE, "status": "completed", "output": [], "error": {}}, {"model": "m", "input": "x"})
    assert (made["status"], made["error"]) == ("completed", None)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_response_that_has_not_ended_is_a_fault_whatever_the_policy(status: str, replies: str) -> None:
    body = {**BARE, "status": status, "output": []}
    for dialect in ("openai", "databricks"):
        ctx = context({"model": "m", "input": "x"}, replies=replies)
        with pytest.raises(Fault, match=f"still {status}: it may be incomplete") as caught:
            dialects[dialect].called["responses"].read_reply(Reply(200, dict(body), {}, orjson.dumps(body)), ctx)
        assert (caught.value.code, caught.value.status) == ("upstream_truncated", 502)


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({}, "completed"),
        ({"status": None}, "completed"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "incomplete"),
        ({"error": {"code": "server_error", "message": "boom"}}, "failed"),
    ],
)
@pytest.mark.parametrize("dialect", called("responses"))
def test_a_whole_response_that_leaves_its_status_out_has_ended(dialect: str, told: JsonObject, status: str) -> None:
    made = read(dialect, {"object": "response", "output": [], **told}, {"model": "m", "input": "x"})
    assert made["status"] == status
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []


@pytest.mark.parametrize("odd", [None, -1, 1.5, "7", True])
def test_details_of_the_usage_are_counts(odd: JsonValue) -> None:
    counts = {"input_tokens": 3, "output_tokens": 4, "total_tokens": odd}
    details = {"input_tokens_details": {"cached_tokens": odd, "by_turn": [1]}, "reasoning_tokens": odd}
    body = {**BARE, "status": "completed", "output": [], "usage": {**counts, **details}}
    assert read("openai", body, {"model": "m", "input": "x"})["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "by_turn": [1]},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    }
    wrong = {**BARE, "status": "completed", "output": [], "usage": {"input_tokens": odd, "output_tokens": 4}}
    assert read("openai", wrong, {"model": "m", "input": "x"})["usage"] is None


def test_settings_that_a_provider_repeats_in_part_become_whole() -> None:
    form = {"type": "json_schema", "name": "n", "schema": SCHEMA}
    told = {"text": {"format": form}, "tools": [{"type": "function", "name": "f"}]}
    made = read("openai", {**BARE, "status": "completed", "output": [], **told}, {"model": "m", "input": "x"})
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
    assert made["text"]["format"]["strict"] is False


@pytest.mark.parametrize(
    ("effort", "sent"), [("low", "low"), ("minimal", "low"), ("xhigh", "high"), ("max", "high"), ("none", None)]
)
def test_effort_moves_to_the_nearest_rung_that_documented_databricks_has(effort: str, sent: str | None) -> None:
    ctx = context({"model": "m", "input": "x", "reasoning": {"effort": effort}})._replace(profile="documented")
    assert write("databricks", ctx).body["reasoning"].get("effort") == sent
    assert (ctx.receipt.header() is None) == (effort == sent)


@pytest.mark.parametrize("name", ["conversation", "background"])
def test_what_documented_databricks_has_not_is_named_before_what_is_missing(name: str) -> None:
    ctx = context({"model": "m", name: "x" if name == "conversation" else True})._replace(profile="documented")
    with pytest.raises(Fault) as caught:
        write("databricks", ctx)
    assert caught.value.path == (name,)


def test_paths_lead_back_through_databricks_nesting() -> None:
    wide = {"type": "object", "properties": {f"p{i}": {} for i in range(16)}}
    ctx = context({"model": "m", "input": "x", "tools": [{"type": "function", "name": "f", "parameters": wide}]})
    ctx = ctx._replace(profile="documented")
    with pytest.raises(Fault) as caught:
        write("databricks", ctx)
    assert caught.value.locate(ctx.receipt).path == ("tools", 0, "parameters", "properties")


@pytest.mark.parametrize("dialect", called("responses"))
@pytest.mark.parametrize("code", ["context_length_exceeded", "insufficient_quota", "server_is_overloaded"])
def test_failures_that_agents_look_for_keep_their_code(dialect: str, code: str) -> None:
    error = {"code": code, "message": "m"}  # OpenAI's servers send them, its SDK's types lack them
    made = read(dialect, {**BARE, "status": "failed", "output": [], "error": error}, {"model": "m", "input": "x"})
    assert (made["error"]["code"], "native_code" in made["error"]) == (code, False)
