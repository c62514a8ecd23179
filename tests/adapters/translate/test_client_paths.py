"""Every path in a translated request leads back to a path that the client wrote, and to the same value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.paths import Path, format_path, lookup
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import RouteTable
from dragoman.contract.json_types import JsonObject, JsonValue

ROUTES = RouteTable(dialects, {})
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "completions": "/v1/completions"}
SCHEMA = {"type": "object", "properties": {"field": {"type": "string"}}}

CHAT: JsonObject = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "first question"},
        {"role": "developer", "content": "more rules"},
        {"role": "user", "content": [
            {"type": "text", "text": "look at this"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            {"type": "file", "file": {"file_data": "data:a/b;base64,aGk=", "filename": "hello"}},
        ]},
        {"role": "assistant", "content": "an answer", "reasoning_content": "thinking", "reasoning_signature": "signed"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "calling"}],
         "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"a":1}'}},
            {"id": "call_2", "type": "custom", "custom": {"name": "write", "input": "free text"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "result one"},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "result two"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "older", "arguments": '{"b":2}'}},
        {"role": "function", "name": "older", "content": "result three"},
        {"role": "assistant", "content": "no more", "refusal": "rather not"},
        {"role": "user", "content": "thanks"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "lookup", "description": "finds", "parameters": SCHEMA}},
        {"type": "custom", "custom": {"name": "write", "description": "writes"}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "lookup"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "shape", "schema": SCHEMA, "strict": True}},
    "max_completion_tokens": 77,
    "reasoning_effort": "high",
    "verbosity": "low",
    "logprobs": True,
    "top_logprobs": 3,
    "temperature": 0.25,
}  # fmt: skip

RESPONSES: JsonObject = {
    "model": "m",
    "instructions": "be brief",
    "input": [
        {"role": "user", "content": "first question"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look at this"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
            {"type": "input_file", "file_data": "data:a/b;base64,aGk=", "filename": "hello"},
        ]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "thinking"}],
         "encrypted_content": "signed"},
        {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "an answer", "annotations": []},
            {"type": "refusal", "refusal": "rather not"},
        ]},
        {"type": "function_call", "call_id": "call_1", "name": "lookup", "arguments": '{"a":1}'},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "write", "input": "free text"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "result two"},
        {"type": "function_call_output", "call_id": "call_1", "output": "result one"},
        {"role": "user", "content": "thanks"},
    ],
    "tools": [
        {"type": "web_search"},
        {"type": "function", "name": "lookup", "description": "finds", "parameters": SCHEMA, "strict": True},
        {"type": "custom", "name": "write", "description": "writes"},
        {"type": "namespace", "name": "space", "description": "", "tools": [
            {"type": "function", "name": "inner", "description": "inside", "parameters": SCHEMA},
        ]},
    ],
    "tool_choice": {"type": "function", "name": "lookup"},
    "text": {"format": {"type": "json_schema", "name": "shape", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
    "reasoning": {"effort": "high"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 3,
    "max_output_tokens": 77,
    "temperature": 0.25,
}  # fmt: skip

COMPLETIONS: JsonObject = {"model": "m", "prompt": "go on with this", "max_tokens": 77, "stop": ["END"], "n": 2}
OLDER_COMPLETIONS: JsonObject = {**COMPLETIONS, "prompt": ["go on with this"]}
ONE_TEXT: JsonObject = {"model": "m", "input": "hello", "instructions": "be brief"}
BRIDGED = [
    pytest.param("chat", "responses", CHAT, id="chat"),
    pytest.param("responses", "chat", RESPONSES, id="responses"),
    pytest.param("responses", "chat", ONE_TEXT, id="responses-text"),
    pytest.param("completions", "chat", COMPLETIONS, id="completions"),
    pytest.param("completions", "chat", OLDER_COMPLETIONS, id="completions-list"),
]


def prepare(protocol: str, called: str, request: JsonObject) -> Attempt:
    route = ROUTES.match(PATHS[protocol])
    assert route is not None
    pipeline = Pipeline(route, Call("POST", PATHS[protocol], {}))
    pipeline.receive(orjson.dumps(request))
    pipeline.start_conversation()
    target = Target("upstream", policy=Policy(emulate_completions=True, unsupported="drop"))
    return pipeline.prepare(plan_target("provider", dialects["openai"], [called], target))


def leaves(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path in a body, with its value."""
    if path:
        yield path, value
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(child, (*path, key))


def refuse(attempt: Attempt, path: Path) -> Path:
    """The path of the client's fault if the provider refuses the value at a path."""
    error = {"message": f"{format_path(path)} is not allowed", "param": format_path(path), "type": "invalid_request"}
    attempt.start_reply(0, 400, {"content-type": "application/json"})
    attempt.feed(0, orjson.dumps({"error": error}))
    attempt.close(0)
    fault = attempt.outcome.fault
    assert fault is not None
    shown = format_path(fault.path) or "The request"
    assert fault.message.endswith(f"{shown} is not allowed")
    return fault.path


@pytest.mark.parametrize(("protocol", "called", "request_body"), BRIDGED)
def test_what_a_provider_refuses_is_named_as_the_client_wrote_it(
    protocol: str, called: str, request_body: JsonObject
) -> None:
    sent = prepare(protocol, called, request_body).calls[0].call.body
    given = {path: value for path, value in leaves(request_body) if isinstance(value, str)}
    unique = [value for value in given.values() if list(given.values()).count(value) == 1]
    wrong: list[str] = []
    for path, value in leaves(sent):
        found = refuse(prepare(protocol, called, request_body), path)
        named = lookup(request_body, found) if found else None
        if found and named is None:
            wrong.append(f"{format_path(path)} reads {format_path(found)}, which the client did not write")
        if isinstance(value, str) and value in unique and path[-1] != "type" and named != value:
            own = next(one for one, text in given.items() if text == value)
            if own[: len(found)] != found or not found:
                wrong.append(f"{format_path(path)} reads {format_path(found)} instead of {format_path(own)}")
    assert wrong == []


@pytest.mark.parametrize(("protocol", "called", "request_body", "sent", "written"), [
    ("responses", "chat", ONE_TEXT, ("messages", 0), ("instructions",)),
    ("responses", "chat", ONE_TEXT, ("messages", 0, "role"), ("instructions",)),
    ("responses", "chat", RESPONSES, ("messages", 3, "tool_calls", 0, "function", "name"), ("input", 4, "name")),
    ("responses", "chat", RESPONSES, ("messages", 3, "tool_calls", 0, "id"), ("input", 4, "call_id")),
    ("responses", "chat", RESPONSES, ("messages", 4, "tool_call_id"), ("input", 7, "call_id")),
    ("responses", "chat", RESPONSES, ("tools", 0, "function", "name"), ("tools", 1, "name")),
    ("responses", "chat", RESPONSES, ("tools", 2, "function", "name"), ("tools", 3, "tools", 0, "name")),
    ("responses", "chat", RESPONSES, ("response_format", "type"), ("text", "format", "type")),
    ("responses", "chat", RESPONSES, ("response_format", "json_schema", "name"), ("text", "format", "name")),
    ("chat", "responses", CHAT, ("instructions",), ("messages", 0, "content")),
    ("chat", "responses", CHAT, ("tools", 0, "name"), ("tools", 0, "function", "name")),
    ("chat", "responses", CHAT, ("text", "format", "type"), ("response_format", "type")),
    ("chat", "responses", CHAT, ("text", "format", "name"), ("response_format", "json_schema", "name")),
    ("chat", "responses", CHAT, ("store",), ()),
    ("completions", "chat", OLDER_COMPLETIONS, ("messages", 0, "content"), ("prompt", 0)),
    ("completions", "chat", COMPLETIONS, ("messages", 0, "role"), ("prompt",)),
])  # fmt: skip
def test_paths_through_bridges(protocol: str, called: str, request_body: JsonObject, sent: Path, written: Path) -> None:
    assert refuse(prepare(protocol, called, request_body), sent) == written


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_conversation_of_instructions_only_is_not_sent_as_an_empty_input(role: str) -> None:
    attempt = prepare("chat", "responses", {"model": "m", "messages": [{"role": role, "content": "be brief"}]})
    body = attempt.calls[0].call.body
    assert body["input"] == [{"type": "message", "role": role, "content": "be brief"}]
    assert "instructions" not in body
    assert refuse(attempt, ("input", 0, "content")) == ("messages", 0, "content")
