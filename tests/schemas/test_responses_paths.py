"""Where an error in a Responses request points, and in what words."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, load, profiles
from tests.tables import for_each

from .conftest import FindErrors

USER = {"role": "user", "content": "x"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
REQUESTS = ["openai/responses.request", "hub/responses.request", "databricks/responses.request"]
EVERYWHERE: list[tuple[Schema, list[str | int], str | None, JsonValue]] = [
    ({"input": [{"role": "alien", "content": "x"}]}, ["input", 0, "role"], "enum", None),
    ({"input": [USER, {"role": "user"}]}, ["input", 1], "required", "content"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
     ["input", 0, "content", 0], "required", "text"),
    ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
     ["input", 0, "content", 0, "type"], "enum", None),
    ({"input": [{**CALL, "call_id": ""}]}, ["input", 0, "call_id"], "minLength", 1),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, ["input", 0], "required", "output"),
    ({"text": {"format": {"type": "xml"}}}, ["text", "format", "type"], "enum", None),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, ["text", "format"], "required", "schema"),
    ({"tools": [{"type": "function", "name": ""}]}, ["tools", 0, "name"], None, None),
    ({"tools": [{"type": "function", "name": "f"}], "tool_choice": "any"}, ["tool_choice"], "enum", None),
    ({"reasoning": {"effort": "extreme"}}, ["reasoning", "effort"], "enum", None),
    ({"metadata": {str(i): "v" for i in range(17)}}, ["metadata"], "maxProperties", 16),
]  # fmt: skip


@for_each("name", REQUESTS)
@for_each(("change", "path", "keyword", "limit"), EVERYWHERE)
def test_one_mistake_is_one_error_at_its_own_place(
    name: str,
    change: Schema,
    path: list[str | int],
    keyword: str | None,
    limit: str | int | None,
    errors: FindErrors,
) -> None:
    [error] = errors(name, {"model": "m", "input": "x", **change}, profiles(name)[-1])
    assert list(error.instance_path) == path
    assert keyword is None or error.kind.name == keyword
    assert limit is None or error.kind.value == limit


RULES: list[tuple[str, str, Schema, str]] = [
    ("openai", "documented", {"stream_options": {}}, "stream_options requires stream to be true"),
    ("openai", "documented", {"tool_choice": "required"}, "a tool_choice other than none and auto requires tools"),
    ("openai", "documented", {"input": None},
     "the request must have input, previous_response_id, conversation or prompt"),
    ("openai", "documented", {"previous_response_id": "r", "conversation": "c"},
     "previous_response_id and conversation cannot be combined"),
    ("databricks", "documented", {"stream_options": {}}, "stream_options requires stream to be true"),
    ("databricks", "documented", {"background": False}, "Databricks does not support background responses"),
    ("databricks", "documented", {"store": True}, "Databricks does not store responses"),
    ("databricks", "documented", {"conversation": "c"}, "Databricks does not support conversations"),
    ("databricks", "documented", {"service_tier": "auto"}, "Databricks does not let clients choose the service tier"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "profile", "change", "message"), RULES)
def test_a_broken_rule_has_a_message(dialect: str, profile: str, change: Schema, message: str) -> None:
    [violation] = load_validator(f"{dialect}/responses.request", profile).violations(
        {"model": "m", "input": "x", **change}
    )
    assert violation.path == (next(reversed(change)),)
    assert violation.message.endswith(f"is not valid: {message}")


def test_a_request_without_anything_to_answer_is_refused(errors: FindErrors) -> None:
    for name in REQUESTS:
        [error] = errors(name, {"model": "m"})
        assert (error.kind.name, error.kind.value) == ("required", "input")
    for key, value in (("previous_response_id", "r"), ("conversation", "c"), ("prompt", {"id": "p"})):
        assert not errors("openai/responses.request", {"model": "m", key: value})


def test_only_documented_databricks_refuses_unknown_nested_keys(errors: FindErrors) -> None:
    tool = {"type": "function", "function": {"name": "f"}, "colour": 1}
    body = {"model": "m", "input": [{**USER, "shade": 1}], "tools": [tool], "text": {"tone": 1}, "anything": 1}
    found = {
        (*error.instance_path, *error.kind.value): error.kind.name
        for error in errors("databricks/responses.request", body)
    }
    assert found == dict.fromkeys(
        [("input", 0, "shade"), ("tools", 0, "colour"), ("text", "tone")], "additionalProperties"
    )
    body["tools"] = [{"type": "function", "name": "f", "colour": 1}]
    assert not errors("openai/responses.request", body) and not errors("hub/responses.request", body)
    assert not errors("databricks/responses.request", body, "actual")


def test_the_parameters_of_a_tool_can_be_any_schema(errors: FindErrors) -> None:
    wild = {"$schema": "x", "type": ["object", "null"], "anyOf": [{}], "$defs": {}, "properties": {"a": {"oneOf": []}}}
    flat = {"type": "function", "name": "f", "parameters": wild}
    nested = {"type": "function", "function": {"name": "f", "parameters": wild}}
    for name in REQUESTS:
        for profile in profiles(name):
            tool = nested if (name, profile) == ("databricks/responses.request", "documented") else flat
            assert not errors(name, {"model": "m", "input": "x", "tools": [tool]}, profile), (name, profile)


def test_sixteen_properties_are_one_too_many(errors: FindErrors) -> None:
    wide = {"type": "object", "properties": {f"p{i}": {} for i in range(16)}}
    nested = {"type": "function", "function": {"name": "f", "parameters": wide}}
    body = {"model": "m", "input": "x", "tools": [nested]}
    [error] = errors("databricks/responses.request", body)
    assert list(error.instance_path) == ["tools", 0, "function", "parameters", "properties"]


def test_the_open_bound_names_the_nearest_value(errors: FindErrors) -> None:
    [low] = errors("databricks/responses.request", {"model": "m", "input": "x", "top_p": 0})
    rule: Any = load("databricks/responses.request")
    for part in low.schema_path[:-1]:
        rule = rule[part]
    assert low.kind.name == "exclusiveMinimum"
    assert not errors("databricks/responses.request", {"model": "m", "input": "x", "top_p": rule["x-nearest"]})


CODEX = {
    "model": "m",
    "instructions": "be brief",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "n"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "custom_tool_call", "call_id": "d", "name": "apply_patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "x"},
        {"type": "local_shell_call", "call_id": "e", "action": {"type": "exec"}, "status": "completed"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "d", "strict": False, "parameters": {"type": "object"}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"installation": "x"},
    "text": {"verbosity": "low"},
}


def test_a_coding_agents_request_is_valid(errors: FindErrors) -> None:
    assert not errors("openai/responses.request", CODEX)
    assert not errors("hub/responses.request", CODEX)
