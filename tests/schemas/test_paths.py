"""Where an error points, and in what words: users see both."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, load, names, profiles
from tests.tables import for_each

from .conftest import FindErrors

USER = {"role": "user", "content": "x"}
TOOL = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {}}
OPENAI_LIKE = ("openai/chat.request", "hub/chat.request")

EVERYWHERE: list[tuple[Schema, list[str | int], str, JsonValue]] = [
    ({"response_format": {"type": "json_schema"}}, ["response_format"], "required", "json_schema"),
    ({"messages": [{"role": "alien"}]}, ["messages", 0, "role"], "enum", None),
    ({"messages": [{"content": "x"}]}, ["messages", 0], "required", "role"),
    ({"messages": [USER, {"role": "user", "content": [IMAGE]}]},
     ["messages", 1, "content", 0, "image_url"], "required", "url"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]},
     ["messages", 0, "content", 0], "required", "text"),
    ({"messages": [{"role": "user", "content": [{}]}]}, ["messages", 0, "content", 0], "required", "type"),
    ({"tools": [TOOL, {"type": "function", "function": {}}]}, ["tools", 1, "function"], "required", "name"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, ["tool_choice"], "required", "function"),
    ({"tools": [TOOL], "tool_choice": "any"}, ["tool_choice"], "enum", None),
    ({"messages": [{"role": "tool", "content": "x"}]}, ["messages", 0], "required", "tool_call_id"),
    ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{**CALL, "function": {"name": "f"}}]}]},
     ["messages", 0, "tool_calls", 0, "function"], "required", "arguments"),
]  # fmt: skip


@for_each("name", [*OPENAI_LIKE, "databricks/chat.request", "azure/chat.request", "mindie/chat.request"])
@for_each(("change", "path", "keyword", "limit"), EVERYWHERE)
def test_one_mistake_is_one_error_at_its_own_place(
    name: str, change: Schema, path: list[str | int], keyword: str, limit: str | int | None, errors: FindErrors
) -> None:
    profile = "documented" if name in OPENAI_LIKE else "actual"
    [error] = errors(name, {"model": "m", "messages": [USER], **change}, profile)
    assert (list(error.instance_path), error.kind.name) == (path, keyword)
    assert limit is None or error.kind.value == limit


RULES: list[tuple[str, str, Schema, list[str | int], str]] = [
    ("openai", "documented", {"top_logprobs": 5}, ["top_logprobs"], "top_logprobs requires logprobs to be true"),
    ("openai", "documented", {"stream_options": {}}, ["stream_options"], "stream_options requires stream to be true"),
    ("openai", "documented", {"tool_choice": "required"}, ["tool_choice"],
     "a tool_choice other than none and auto requires tools"),
    ("databricks", "documented", {"top_logprobs": 5}, ["top_logprobs"], "top_logprobs requires logprobs to be true"),
    ("databricks", "documented", {"messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]},
     ["messages", 1, "role"], "only the first message can be a system message"),
    ("databricks", "documented", {"messages": [{"role": "assistant", "content": "x", "tool_calls": [CALL]}]},
     ["messages", 0, "content"], "an assistant message with tool_calls cannot have content"),
    ("databricks", "documented", {"messages": [{**USER, "tool_calls": [CALL]}]}, ["messages", 0, "tool_calls"],
     "only assistant messages can have tool_calls"),
    ("databricks", "actual", {"messages": [{**USER, "tool_call_id": "c"}]}, ["messages", 0, "tool_call_id"],
     "only tool messages can have a tool_call_id"),
    ("azure", "actual", {"tool_choice": "required"}, ["tool_choice"],
     "a tool_choice other than none and auto requires tools"),
    ("mindie", "documented", {"model": ".m"}, ["model"],
     "a model name has 1 to 256 letters, digits, '.', '-' and '_', and begins and ends with a letter or digit"),
    ("mindie", "actual", {"top_k": 0}, ["top_k"], "top_k must be greater than 0, or -1, which turns it off"),
    ("mindie", "actual", {"top_logprobs": 1, "logprobs": False}, ["top_logprobs"],
     "top_logprobs requires that logprobs is not false"),
    ("mindie", "native", {"use_beam_search": True, "max_tokens": 129}, ["max_tokens"],
     "with use_beam_search, max_tokens is at most 128"),
    ("mindie", "actual", {"n": 2, "temperature": 0}, ["temperature"],
     "n above 1 requires a temperature greater than 0"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "profile", "change", "path", "message"), RULES)
def test_a_broken_rule_has_a_message(
    dialect: str, profile: str, change: Schema, path: list[str | int], message: str, errors: FindErrors
) -> None:
    name = f"{dialect}/chat.request"
    [error] = errors(name, {"model": "m", "messages": [USER], **change}, profile)
    assert list(error.instance_path) == path
    assert said(load(name, profile), error.schema_path) == message


def said(schema: JsonValue, schema_path: list[str | int]) -> str | None:
    """The nearest x-message above the keyword that failed."""
    text = None
    for part in schema_path[:-1]:
        schema = schema[part]
        text = schema.get("x-message", text) if isinstance(schema, dict) else text
    return text


def test_too_many_properties_name_their_tool(errors: FindErrors) -> None:
    wide = {"type": "object", "properties": {f"p{number}": {} for number in range(16)}}
    tools = [TOOL, {"type": "function", "function": {"name": "g", "parameters": wide}}]
    [error] = errors("databricks/chat.request", {"messages": [USER], "tools": tools})
    assert list(error.instance_path) == ["tools", 1, "function", "parameters", "properties"]
    assert (error.kind.name, error.kind.value) == ("maxProperties", 15)


@pytest.mark.parametrize("dialect", ["databricks", "azure"])
def test_unknown_nested_keys_are_refused_by_name(dialect: str, errors: FindErrors) -> None:
    body = {"messages": [{**USER, "shade": 1}], "tools": [{**TOOL, "colour": 1}], "anything": 1}
    found = {
        (*error.instance_path, *error.kind.value): error.kind.name
        for error in errors(f"{dialect}/chat.request", body, "actual")
    }
    assert found == {("messages", 0, "shade"): "additionalProperties", ("tools", 0, "colour"): "additionalProperties"}


@pytest.mark.parametrize("dialect", ["openai", "hub", "mindie"])
def test_unknown_nested_keys_are_kept_elsewhere(dialect: str, errors: FindErrors) -> None:
    name = f"{dialect}/chat.request"
    body = {"model": "m", "messages": [{**USER, "shade": 1}], "tools": [{**TOOL, "colour": 1}], "anything": 1}
    assert not [error for profile in profiles(name) for error in errors(name, body, profile)]


def test_the_parameters_of_a_tool_can_be_any_schema(errors: FindErrors) -> None:
    wild = {"$schema": "x", "type": ["object", "null"], "anyOf": [{}], "$defs": {}, "properties": {"a": {"oneOf": []}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": wild}}
    for name in (name for name in names() if name.endswith("chat.request")):
        for profile in profiles(name):
            assert not errors(name, {"model": "m", "messages": [USER], "tools": [tool]}, profile), (name, profile)


@pytest.mark.parametrize(
    ("dialect", "field"), [("databricks", "top_p"), ("mindie", "top_p"), ("mindie", "temperature")]
)
def test_open_bounds_name_the_nearest_value(dialect: str, field: str, errors: FindErrors) -> None:
    name = f"{dialect}/chat.request"
    [low] = errors(name, {"model": "m", "messages": [USER], field: 0})
    rule: Any = load(name)
    for part in low.schema_path[:-1]:
        rule = rule[part]
    assert low.kind.name == "exclusiveMinimum"
    assert not errors(name, {"model": "m", "messages": [USER], field: rule["x-nearest"]})
    [high] = errors(name, {"model": "m", "messages": [USER], field: 3})
    assert high.kind.name == "maximum" and "x-nearest" not in load(name)["properties"][field]
