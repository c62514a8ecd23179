"""What the dialects accept from clients of chat, and how they answer."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext
from tests.dialects import DIALECTS
from tests.tables import for_each

HELLO = [{"role": "user", "content": "hello"}]
INVOCATIONS = "/serving-endpoints/llama/invocations"
CHAT = "/chat/completions"


def tool(name: str = "f", properties: int = 1) -> JsonObject:
    parameters = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(properties)}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def databricks(body: JsonObject, profile: str, make: MakeContext) -> JsonObject | Reply:
    return ask("databricks", Call("POST", INVOCATIONS, {"messages": HELLO, **body}), make(profile))


def mindie(body: JsonObject, profile: str, make: MakeContext) -> JsonObject | Reply:
    call = Call("POST", "/v1/chat/completions", {"model": "m", "messages": HELLO, **body})
    return ask("mindie", call, make(profile))


def azure(
    body: JsonObject, make: MakeContext, extra: str | None = None, version: str | None = "2024-05-01-preview"
) -> JsonObject | Reply:
    query = {} if version is None else {"api-version": version}
    headers = {} if extra is None else {"extra-parameters": extra}
    return ask("azure", Call("POST", CHAT, {"messages": HELLO, **body}, query, headers), make())


def ask(dialect: str, call: Call, ctx: Context) -> JsonObject | Reply:
    """The hub request, or the error that the client gets, which is always valid in its own dialect."""
    served = dialects[dialect].served["chat"]
    try:
        return served.read_request(call, ctx)
    except Fault as fault:
        reply = served.write_fault(fault, ctx)
        assert [v.message for v in load_validator(f"{dialect}/chat.error", ctx.profile).violations(reply.body)] == []
        return reply


def refused(found: JsonObject | Reply, status: int, *said: str) -> JsonObject:
    assert isinstance(found, Reply), "the request was taken"
    assert found.status == status
    for word in said:
        assert word in str(found.body)
    return found.body


def taken(found: JsonObject | Reply) -> JsonObject:
    assert isinstance(found, dict), getattr(found, "body", None)
    return found


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_databricks_takes_one_system_message(profile: str, context: MakeContext) -> None:
    system = {"role": "system", "content": "s"}
    body = refused(databricks({"messages": [system, system, *HELLO]}, profile, context), 400, "messages[1]")
    assert body["error_code"] == "INVALID_PARAMETER_VALUE"
    assert body.keys().isdisjoint({"error", "detail"})
    taken(databricks({"messages": [system, *HELLO]}, profile, context))


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_databricks_top_logprobs_need_logprobs(profile: str, context: MakeContext) -> None:
    refused(databricks({"top_logprobs": 5}, profile, context), 400, "top_logprobs")
    refused(databricks({"top_logprobs": 21, "logprobs": True}, profile, context), 400, "top_logprobs")
    assert taken(databricks({"top_logprobs": 5, "logprobs": True}, profile, context))["top_logprobs"] == 5
    taken(databricks({"top_logprobs": 0, "logprobs": True}, profile, context))


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_databricks_takes_32_tools_of_15_properties(profile: str, context: MakeContext) -> None:
    taken(databricks({"tools": [tool(f"f{i}") for i in range(32)]}, profile, context))
    refused(databricks({"tools": [tool(f"f{i}") for i in range(33)]}, profile, context), 400, "tools")
    taken(databricks({"tools": [tool(properties=15)]}, profile, context))
    refused(databricks({"tools": [tool(), tool("g", 16)]}, profile, context), 400, "tools[1]")


@pytest.mark.parametrize("profile", ["documented", "actual"])
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("top_p", [1, 0.01], [0, 1.01]),
        ("temperature", [0, 2], [2.01, -0.1]),
        ("max_tokens", [None, 1], [0, 1.5]),
        ("top_k", [None, 1], [0]),
    ],
)
def test_ranges_of_databricks(
    profile: str, field: str, good: list[JsonValue], bad: list[JsonValue], context: MakeContext
) -> None:
    for value in good:
        taken(databricks({field: value}, profile, context))
    for value in bad:
        refused(databricks({field: value}, profile, context), 400, field)


def test_azures_header_decides_about_extra_parameters(context: MakeContext) -> None:
    body = refused(azure({"n": 2, "logprobs": True}, context), 400, "'n'", "'logprobs'")
    assert "['n', 'logprobs']" in body["detail"]
    for word in ("drop", "ignore", "Ignore"):
        assert "n" not in taken(azure({"n": 2}, context, word))
    for word in ("pass-through", "allow"):
        assert taken(azure({"n": 2}, context, word))["n"] == 2
    refused(azure({"n": 2}, context, "maybe"), 400, "pass-through")


def test_azures_error_code_is_in_a_header_too(context: MakeContext) -> None:
    found = azure({"n": 2}, context)
    assert isinstance(found, Reply)
    assert found.headers["x-ms-error-code"]


@pytest.mark.parametrize("version", [None, "2024-13", "2024-13-01", "2024-05-01-beta", "latest"])
def test_azure_requires_an_api_version(version: str | None, context: MakeContext) -> None:
    refused(azure({}, context, version=version), 400, "api-version")
    taken(azure({}, context, version="2024-04-01-preview"))
    taken(azure({}, context, version="2025-05-01"))


@pytest.mark.parametrize("name", [".m", "m-", "_m", "m" * 257, "a b", ""])
@pytest.mark.parametrize("profile", ["documented"])
def test_mindie_model_names(name: str, profile: str, context: MakeContext) -> None:
    body = refused(mindie({"model": name}, profile, context), 422, "model")
    assert body.keys() == {"error", "error_type"}
    assert body["error_type"] == "Input Validation Error"
    taken(mindie({"model": "gpt-3.5-turbo"}, profile, context))


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("temperature", [0.0001, 2.0], [0, 2.1]),
        ("top_p", [0.1, 1.0], [0, 1.1]),
        ("seed", [18446744073709551615, 1, None], [0, -1]),
        ("presence_penalty", [-2.0, 2.0], [-2.01, 2.01]),
    ],
)
def test_ranges_of_mindie_documented(
    field: str, good: list[JsonValue], bad: list[JsonValue], context: MakeContext
) -> None:
    for value in good:
        taken(mindie({field: value}, "documented", context))
    for value in bad:
        refused(mindie({field: value}, "documented", context), 422, field)


def test_mindie_counts_the_characters_of_all_messages(context: MakeContext) -> None:
    most = 512 * 1024
    just = [{"role": "system", "content": "漢" * 100}, {"role": "user", "content": "x" * (most - 100)}]
    taken(mindie({"messages": just}, "documented", context))
    over = [*just, {"role": "user", "content": "y"}]
    refused(mindie({"messages": over}, "documented", context), 422, str(most), str(most + 1))
    taken(mindie({"messages": over}, "actual", context))


def test_a_mindie_error_in_azure_form(context: MakeContext) -> None:
    raw = b'{"error":"Parameter top_p must be in (0.0,1.0], got 0.","error_type":"Input Validation Error"}'
    ctx = context()
    fault = dialects["mindie"].called["chat"].read_fault(Reply(422, {}, {}, raw), ctx)
    reply = dialects["azure"].served["chat"].write_fault(fault, ctx)
    assert reply.status == reply.body["status"] == 422
    assert reply.body["detail"] == {"loc": ["body", "top_p"], "value": "0"}
    assert reply.body.keys() == {"code", "error", "message", "status", "detail"}
    assert reply.headers["x-ms-error-code"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"type": "image_url", "content": "https://example.com/a.png", "detail": "low"},
            {"url": "https://example.com/a.png", "detail": "low"},
        ),
        ({"type": "image", "content": "iVBORw0KGgo="}, {"url": "data:image/png;base64,iVBORw0KGgo="}),
        ({"type": "image", "content": "/9j/4AAQ"}, {"url": "data:image/jpeg;base64,/9j/4AAQ"}),
    ],
)
def test_azure_images_in_the_older_form(part: JsonObject, expected: dict[str, str], context: MakeContext) -> None:
    hub = taken(azure({"messages": [{"role": "user", "content": [part]}]}, context))
    assert hub["messages"][0]["content"] == [{"type": "image_url", "image_url": expected}]


@pytest.mark.parametrize(("profile", "expected"), [("documented", True), ("actual", None)])
def test_databricks_stream_left_out(profile: str, expected: bool | None, context: MakeContext) -> None:
    hub = taken(databricks({}, profile, context))
    assert hub.get("stream") is expected
    assert hub["model"] == "llama"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rules_across_fields_hold_in_every_dialect(dialect: str, context: MakeContext) -> None:
    calls = {
        "openai": Call("POST", "/v1/chat/completions", {}),
        "databricks": Call("POST", INVOCATIONS, {}),
        "azure": Call("POST", CHAT, {}, {"api-version": "2024-05-01-preview"}),
        "mindie": Call("POST", "/v1/chat/completions", {}),
    }
    bad = [
        ({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
        ({"messages": [*HELLO, {"role": "tool", "tool_call_id": "x", "content": "r"}]}, "messages[1].tool_call_id"),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "description": "", "parameters": {"$ref": "http://127.0.0.1:9/x"}},
                    }
                ]
            },
            "tools[0].function.parameters",
        ),
        ({"api_base": "http://127.0.0.1:9"}, "api_base"),
        ({"chat_template": "{{ 1 }}"}, "chat_template"),
    ]
    for body, place in bad:
        call = calls[dialect]
        full = Call(call.method, call.path, {"model": "m", "messages": HELLO, **body}, call.query)
        found = ask(dialect, full, context())
        refused(found, 422 if dialect == "mindie" else 400)
        with pytest.raises(Fault) as caught:
            dialects[dialect].served["chat"].read_request(full, context())
        assert (caught.value.param or "").startswith(place)


def test_an_error_of_one_dialect_is_read_whatever_it_came_from(context: MakeContext) -> None:
    raw = b'{"error_code":"INVALID_PARAMETER_VALUE","message":"top_p is wrong"}'
    fault = read_fault(Reply(400, {}, {}, raw), context())
    for name in DIALECTS:
        reply = dialects[name].served["chat"].write_fault(fault, context())
        assert reply.status in (400, 422)
        assert "top_p is wrong" in str(reply.body)


ODD = [
    {"messages": [{"role": "user", "content": "x", "tool_calls": 5}]},
    {"messages": [{"role": "user", "content": "x", "tool_calls": [None]}]},
    {"messages": [*HELLO, {"role": "tool", "tool_call_id": {"a": 1}, "content": "r"}]},
    {"tools": 5},
    {"tools": [None], "tool_choice": {"type": "function", "function": {"name": "f"}}},
]


@for_each("profile", ["documented", "actual"])
@for_each("dialect", DIALECTS)
@for_each("body", ODD)
def test_what_one_dialect_does_not_look_at_breaks_nothing(
    dialect: str, profile: str, body: JsonObject, context: MakeContext
) -> None:
    query = {"api-version": "2024-05-01-preview"}
    call = Call("POST", "/serving-endpoints/m/invocations", {"model": "m", "messages": HELLO, **body}, query)
    found = ask(dialect, call, context(profile))
    assert isinstance(found, dict) or found.status in (400, 422)


def test_azure_parts_of_other_types_have_no_older_form(context: MakeContext) -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}, "content": []}
    hub = taken(azure({"messages": [{"role": "user", "content": [part]}]}, context))
    assert hub["messages"][0]["content"] == [part]


def test_azure_images_said_twice_are_refused(context: MakeContext) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a"}, "content": "https://example.com/b"}
    refused(azure({"messages": [{"role": "user", "content": [part]}]}, context), 400, "content")


def test_azure_detail_beside_the_image_belongs_to_it(context: MakeContext) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a"}, "detail": "low"}
    hub = taken(azure({"messages": [{"role": "user", "content": [part]}]}, context))
    image = {"url": "https://example.com/a", "detail": "low"}
    assert hub["messages"][0]["content"] == [{"type": "image_url", "image_url": image}]


def test_the_address_of_an_image_keeps_its_path_if_only_the_detail_moves(context: MakeContext) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a"}, "detail": None}
    ctx, place = context(), ("messages", 0, "content", 0, "image_url", "url")
    call = Call(
        "POST", CHAT, {"messages": [{"role": "user", "content": [part]}]}, {"api-version": "2024-05-01-preview"}
    )
    taken(ask("azure", call, ctx))
    assert ctx.receipt.unmap(place) == place


@pytest.mark.parametrize("dialect", ["databricks", "azure"])
def test_a_reply_has_no_key_that_says_nothing_and_would_be_refused_on_its_way_back(
    dialect: str, context: MakeContext
) -> None:
    said = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
    }
    calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    choice = {"index": 0, "message": {**said, "tool_calls": calls}, "finish_reason": "tool_calls"}
    ctx = context()
    reply = dialects[dialect].served["chat"].write_reply({**head, "choices": [choice]}, ctx)
    message = reply.body["choices"][0]["message"]
    assert message == {"role": "assistant", "content": None, "tool_calls": calls}
    kept = (
        dialects[dialect]
        .served["chat"]
        .write_reply(
            {
                **head,
                "choices": [{**choice, "message": {**said, "content": "a", "annotations": [{"type": "url_citation"}]}}],
            },
            ctx,
        )
    )
    assert kept.body["choices"][0]["message"]["annotations"] == [{"type": "url_citation"}]


def test_content_that_is_no_text_stays_after_the_reasoning(context: MakeContext) -> None:
    part = {"type": "text", "text": 1}
    message = {"content": part, "reasoning_content": "r"}
    body = dialects["databricks"].served["chat"].write_reply({"choices": [{"message": message}]}, context()).body
    assert body["choices"][0]["message"]["content"][1:] == [part]
