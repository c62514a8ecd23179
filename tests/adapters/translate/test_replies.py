from __future__ import annotations

from itertools import count

import pytest
from openai.types.responses import Response

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.replies import to_chat_reply, to_responses_reply
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

USAGE = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
CALL = {"id": "call_JwmTNF3O", "type": "function", "function": {"name": "f", "arguments": '{"x":  1}'}}


def context(**target: JsonValue) -> Context:
    numbers = count(1)
    return Context(
        "actual",
        Call("POST", "/", {}),
        Receipt(),
        Target("m", **target),
        {},
        lambda: 1.7e9,
        lambda prefix: f"{prefix}_{next(numbers)}",
    )


def completion(finish: str = "stop", **message: JsonValue) -> JsonObject:
    message = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


def translated(reply: JsonObject, request: JsonObject | None = None, **target: JsonValue) -> JsonObject:
    made = to_responses_reply(reply, request or {"model": "m", "input": "x"}, "resp_1", context(**target))
    Response.model_validate(made, strict=False)
    return made


def test_text() -> None:
    made = translated(
        completion(content="hi"), {"model": "m", "input": "x", "temperature": 0.5, "metadata": {"a": "b"}}
    )
    assert (made["status"], made["completed_at"], made["error"]) == ("completed", 1_700_000_000, None)
    assert (made["temperature"], made["metadata"], made["top_p"]) == (0.5, {"a": "b"}, 1.0)
    part = {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}
    assert made["output"] == [
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    ]
    assert made["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 21,
    }


def test_databricks_reasoning_is_a_summary_before_the_message() -> None:
    reply = completion(content="answer", reasoning_content="thinking", reasoning_signature="sig")
    reasoning, message = translated(reply, summarizes_reasoning=True)["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "thinking"}]
    assert reasoning["encrypted_content"] == "sig"
    assert message["content"][0]["text"] == "answer"
    (reasoning, _) = translated(reply)["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "thinking"}]


def test_from_the_content_that_databricks_sends() -> None:
    blocks = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "thinking", "signature": "sig"}]}]
    message = {"role": "assistant", "content": [*blocks, {"type": "text", "text": "answer"}]}
    usage = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "reasoning_tokens": 4}
    body = {
        "id": "c",
        "object": "chat.completions",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    ctx = context(summarizes_reasoning=True)
    hub = dialects["databricks"].called["chat"].read_reply(Reply(200, body), ctx)
    made = to_responses_reply(hub, {"model": "m", "input": "x"}, "resp_1", ctx)
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
    assert made["output"][0]["summary"] == [{"type": "summary_text", "text": "thinking"}]
    assert made["output"][1]["content"][0]["text"] == "answer"
    assert made["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 21,
    }


def test_length_is_incomplete() -> None:
    made = translated(completion("length", content="cut"))
    assert made["status"] == "incomplete"
    assert made["incomplete_details"] == {"reason": "max_output_tokens"}
    assert made["output"][-1]["status"] == "incomplete"
    assert made["completed_at"] is None


def test_a_call_is_one_item_and_its_arguments_are_untouched() -> None:
    made = translated(completion("tool_calls", content="", tool_calls=[CALL]))
    (item,) = made["output"]
    assert made["status"] == "completed"
    assert (item["type"], item["call_id"], item["arguments"]) == ("function_call", "call_JwmTNF3O", '{"x":  1}')


def test_a_flattened_name_goes_back_into_its_namespace() -> None:
    call = {**CALL, "function": {"name": "mcp__f", "arguments": "{}"}}
    request = {"model": "m", "input": "x", "tools": [{"type": "namespace", "name": "mcp", "tools": [{"name": "f"}]}]}
    made = to_responses_reply(completion("tool_calls", tool_calls=[call]), request, "resp_1", context())
    assert (made["output"][0]["namespace"], made["output"][0]["name"]) == ("mcp", "f")


def test_a_function_that_stands_for_free_text_is_told_as_such() -> None:
    call = {**CALL, "function": {"name": "patch", "arguments": '{"input": "*** Begin"}'}}
    request = {"model": "m", "input": "x", "tools": [{"type": "custom", "name": "patch"}]}
    [item] = to_responses_reply(completion("tool_calls", tool_calls=[call]), request, "resp_1", context())["output"]
    assert (item["type"], item["input"], item["name"]) == ("custom_tool_call", "*** Begin", "patch")


def test_a_refusal_is_a_part() -> None:
    (item,) = translated(completion(refusal="I won't"))["output"]
    assert item["content"] == [{"type": "refusal", "refusal": "I won't"}]


def test_a_call_in_the_old_form_is_a_call() -> None:
    made = translated(completion("function_call", function_call={"name": "f"}))  # a stream may have sent no arguments
    assert made["output"][0]["arguments"] == ""
    made = translated(completion("function_call", function_call={"name": "f", "arguments": "{}"}))
    (item,) = made["output"]
    assert made["status"] == "completed"
    assert (item["type"], item["name"], item["arguments"], item["call_id"]) == ("function_call", "f", "{}", "call_1")


def test_audio_in_a_reply_is_a_loss() -> None:
    ctx = context()
    made = to_responses_reply(completion(content="a", audio={"id": "x"}), {"model": "m", "input": "x"}, "resp_1", ctx)
    assert len(made["output"]) == 1
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["choices[0].message.audio"]


def test_a_response_tells_the_choice_with_index_0() -> None:
    reply = completion(content="first")
    second = {**reply["choices"][0], "index": 1, "message": {"role": "assistant", "content": "second"}}
    ctx = context()
    both = {**reply, "choices": [second, reply["choices"][0]]}
    made = to_responses_reply(both, {"model": "m", "input": "x"}, "resp_1", ctx)
    assert made["output"][0]["content"][0]["text"] == "first"
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["choices[0]"]


def response(output: list[JsonObject], status: str = "completed", **more: JsonValue) -> JsonObject:
    usage = {
        "input_tokens": 9,
        "output_tokens": 12,
        "total_tokens": 21,
        "output_tokens_details": {"reasoning_tokens": 4},
        "input_tokens_details": {"cached_tokens": 2},
    }
    return {
        "id": "resp_9",
        "object": "response",
        "created_at": 1.0,
        "model": "m",
        "status": status,
        "output": output,
        "usage": usage,
        **more,
    }


def said(*texts: str) -> JsonObject:
    return {"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []} for text in texts]}


def test_parts_are_concatenated_and_usage_renamed() -> None:
    made = to_chat_reply(response([said("a", "b"), said("c")]), context())
    assert [v.message for v in load_validator("hub/chat.reply").violations(made)] == []
    choice = made["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"], made["id"]) == ("ab\n\nc", "stop", "resp_9")
    assert made["usage"] == {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }


def test_calls_and_reasoning_come_back() -> None:
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"}
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    made = to_chat_reply(response([reasoning, call, {"type": "web_search_call"}]), context())
    message = made["choices"][0]["message"]
    assert (message["reasoning_content"], message["reasoning_signature"]) == ("s", "e")
    assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    assert made["choices"][0]["finish_reason"] == "tool_calls"


def test_of_reasoning_in_several_items_the_texts_are_separated_and_the_seals_listed() -> None:
    parts = [{"type": "summary_text", "text": text} for text in ("a", "b")]
    thoughts = [
        {"type": "reasoning", "summary": parts, "encrypted_content": "A"},
        {"type": "reasoning", "summary": [], "encrypted_content": "B"},
        {"type": "reasoning", "summary": parts[1:], "encrypted_content": "C"},
    ]
    ctx = context()
    message = to_chat_reply(response([thoughts[0], said("x"), *thoughts[1:]]), ctx)["choices"][0]["message"]
    assert (message["reasoning_content"], "reasoning_signature" in message) == ("a\n\nb\n\nb", False)
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "a\n\nb", "signature": "A", "index": 0},
        {"type": "reasoning.encrypted", "data": "B", "index": 1},
        {"type": "reasoning.text", "text": "b", "signature": "C", "index": 2},
    ]
    assert ctx.receipt.losses == []


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_incomplete_is_a_finish_reason(reason: str, finish: str) -> None:
    made = to_chat_reply(response([said("a")], "incomplete", incomplete_details={"reason": reason}), context())
    assert made["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress", "queued"])
def test_what_did_not_end_well_is_a_fault(status: str) -> None:
    with pytest.raises(Fault) as caught:
        to_chat_reply(response([], status, error={"code": "server_error", "message": "boom"}), context())
    assert (caught.value.status, caught.value.message) == (502, "boom")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("rate_limit_exceeded", "rate_limit"),
        ("invalid_prompt", "invalid_request"),
        ("server_error", "upstream_error"),
    ],
)
def test_a_failure_keeps_its_kind(code: str, kind: str) -> None:
    with pytest.raises(Fault) as caught:
        to_chat_reply(response([], "failed", error={"code": code, "message": "boom"}), context())
    assert (caught.value.kind, caught.value.provider_code) == (kind, code)
    with pytest.raises(Fault) as native:
        to_chat_reply(
            response([], "failed", error={"code": "server_error", "message": "boom", "native_code": code}), context()
        )
    assert (native.value.kind, native.value.provider_code) == (kind, code)


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tool_calls"])
def test_chat_to_responses_and_back_is_the_identity(finish: str) -> None:
    message = {"content": "answer", "reasoning_content": "thinking", "reasoning_signature": "s"}
    if finish == "tool_calls":
        message["tool_calls"] = [CALL]  # type: ignore[assignment]
    reply = completion(finish, **message)
    back = to_chat_reply(to_responses_reply(reply, {"model": "m", "input": "x"}, "resp_1", context()), context())
    cached = {"cached_tokens": 0, "cache_write_tokens": 0}
    details = {"prompt_tokens_details": cached, "completion_tokens_details": {"reasoning_tokens": 0}}
    assert back == {**reply, "id": "resp_1", "usage": {**USAGE, **details}}


def test_the_settings_that_a_response_repeats_are_whole() -> None:
    request = {
        "model": "m",
        "input": "x",
        "tools": [{"type": "function", "name": "f"}],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": None},
        "reasoning": {"effort": "low"},
    }
    made = translated(completion(content="hi"), request)
    assert [v.message for v in load_validator("hub/responses.reply").violations(made)] == []
    assert made["reasoning"] == {"effort": "low", "summary": None}
