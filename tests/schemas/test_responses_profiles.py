"""What the requests, replies and events of Responses hold in each dialect, and what tells the profiles apart."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, load
from tests.tables import for_each

from .conftest import Compile

REQUEST = {
    "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "stream", "stream_options", "text",
    "reasoning", "tool_choice", "tools", "parallel_tool_calls", "max_tool_calls", "metadata", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "user", "truncation", "top_logprobs", "include", "prompt",
}  # fmt: skip
REFUSED = {"background", "store", "conversation", "service_tier"}
RESPONSE = {
    "id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details", "instructions",
    "max_output_tokens", "temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls", "store", "metadata",
}  # fmt: skip
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "input_text": ({"type", "text"}, {"text"}),
    "output_text": ({"type", "text", "annotations"}, {"text"}),
    "input_image": ({"type", "image_url"}, {"image_url"}),
    "input_file": ({"type", "file_id", "filename", "file_data"}, set()),
    "function_call": ({"type", "id", "call_id", "name", "arguments"}, {"id", "call_id", "name", "arguments"}),
    "function_call_output": ({"type", "call_id", "output"}, {"call_id", "output"}),
    "text": ({"format"}, set()),
    "format": ({"type", "json_schema"}, {"type"}),
    "json_schema": ({"name", "description", "schema", "strict"}, {"name", "schema"}),
    "reasoning": ({"effort", "encrypted_content"}, set()),
    "tool": ({"type", "function"}, {"type", "function"}),
    "function": ({"name", "description", "parameters", "strict"}, {"name"}),
    "tool_choice": ({"type", "function"}, {"type", "function"}),
}
"""The objects of the Databricks reference: their fields, and those that are needed."""


def test_the_databricks_request_has_the_documents_fields_only() -> None:
    assert load("databricks/responses.request")["properties"].keys() == REQUEST | REFUSED
    assert load("databricks/responses.request")["required"] == ["model", "input"]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_databricks_objects_have_the_documents_fields_only(name: str) -> None:
    fields, needed = OBJECTS[name]
    rule = load("databricks/responses.request")["$defs"][name]
    assert rule["properties"].keys() == fields
    assert set(rule.get("required", ())) == needed


def test_the_databricks_reply_has_the_documents_fields_only() -> None:
    schema = load("databricks/responses.reply")
    assert schema["properties"].keys() == RESPONSE
    assert schema["$defs"]["message"]["properties"].keys() == {"id", "role", "content", "status", "type"}
    usage = {"prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens"}
    assert schema["$defs"]["usage"]["properties"].keys() == usage
    assert schema["properties"]["error"]["required"] == ["code", "message", "type"]


def test_actual_databricks_has_openais_shapes() -> None:
    added = {"client_request_id", "usage_context", "extra_params"}
    openai = load("openai/responses.request")["properties"]
    assert load("databricks/responses.request", "actual")["properties"].keys() == openai.keys() | added
    for side in ("reply", "event"):
        passed, made = load(f"databricks/responses.{side}", "actual"), load(f"openai/responses.{side}", "actual")
        assert passed["properties"] == made["properties"]
        assert passed.get("$defs") == made.get("$defs")


def test_the_hub_and_openai_know_every_parameter_of_the_sdk() -> None:
    wanted = ResponseCreateParamsNonStreaming.__annotations__.keys()
    assert len(wanted) > 30
    for name in ("hub/responses.request", "openai/responses.request"):
        assert wanted <= load(name)["properties"].keys(), name


def test_the_hub_knows_every_parameter_of_open_responses() -> None:
    spec = json.loads(files("llm_comply.specs").joinpath("openresponses.json").read_text("utf-8"))
    wanted = spec["components"]["schemas"]["CreateResponseBody"]["properties"].keys()
    assert wanted <= load("hub/responses.request")["properties"].keys()
    missing = wanted - load("openai/responses.request")["properties"].keys()
    assert missing == {"presence_penalty", "frequency_penalty"}


CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hi", "annotations": []}],
}
USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}
COUNTS = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "reasoning_tokens": 0}
FLAT: Schema = {"type": "function", "name": "f", "description": None, "parameters": {}, "strict": False}
NESTED = {"type": "function", "function": {"name": "f"}}


def openai(**other: JsonValue) -> Schema:
    body = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None, "model": "m",
        "incomplete_details": None, "instructions": None, "output": [MESSAGE], "parallel_tool_calls": True,
        "tools": [FLAT], "tool_choice": "auto", "metadata": {}, "temperature": 1.0, "top_p": 1.0, "usage": USAGE,
    }  # fmt: skip
    return body | other


def databricks(**other: JsonValue) -> Schema:
    body = {
        "id": "e" * 200, "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [MESSAGE], "usage": COUNTS, "error": None, "incomplete_details": None, "instructions": None,
        "max_output_tokens": None, "temperature": 1.0, "top_p": 1.0, "tools": [NESTED], "tool_choice": NESTED,
        "parallel_tool_calls": True, "store": False, "metadata": {},
    }  # fmt: skip
    return body | other


BLOCKS = [{"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": {"a": 1}}]
SPOKEN = {key: value for key, value in MESSAGE.items() if key != "status"}
REPLIES: list[tuple[str, Schema, str]] = [
    ("openai", openai(), "documented actual"),
    ("openai", openai(output=[CALL, {"type": "reasoning", "id": "r", "summary": []}]), "documented actual"),
    ("openai", openai(output=[{"type": "web_search_call", "anything": 1}]), "documented actual"),
    ("openai", openai(usage=None, instructions=[{"role": "user", "content": "x"}]), "documented actual"),
    ("openai", openai(usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}), "actual"),
    ("openai", openai(output=[{**MESSAGE, "status": None}], metadata=None, tool_choice=None), "actual"),
    ("openai", openai(output=[{**CALL, "arguments": {"a": 1}}]), "actual"),
    ("openai", openai(status="done"), "actual"),
    ("openai", {"output": []}, "actual"),
    ("openai", openai(output=None), ""),
    ("openai", openai(output=[{"type": "message"}]), ""),
    ("openai", openai(output=[{**MESSAGE, "content": [{"type": "output_text"}]}]), ""),
    ("databricks", databricks(), "documented actual"),
    ("databricks", databricks(output=[SPOKEN]), "documented actual"),
    ("databricks", databricks(output=[{**MESSAGE, "content": BLOCKS}]), "documented actual"),
    ("databricks", databricks(usage=USAGE), "actual"),
    ("databricks", databricks(usage={**USAGE, **COUNTS}), "documented actual"),
    ("databricks", databricks(tools=[FLAT]), "actual"),
    ("databricks", databricks(output=[CALL]), "actual"),
    ("databricks", databricks(output=[{"type": "reasoning", "id": "r", "summary": []}, MESSAGE]), "actual"),
    ("databricks", databricks(output=[{**MESSAGE, "content": [{"type": "refusal", "refusal": "no"}]}]), "actual"),
    ("databricks", databricks(status="done"), "actual"),
    ("databricks", databricks(error={"code": "c", "message": "m", "type": "t"}), "documented actual"),
    ("databricks", databricks(error={"code": "c", "message": "m"}), "actual"),
    ("databricks", databricks(error="m"), "actual"),
    ("databricks", databricks(output=[{**MESSAGE, "content": [{"type": "output_text"}]}]), ""),
]


def profiles_that_take(name: str, body: Schema, compiled: Compile) -> list[str]:
    return [profile for profile in ("documented", "actual") if compiled(name, profile).is_valid(body)]


@for_each(("dialect", "reply", "wanted"), REPLIES)
def test_a_reply_is_valid_in_these_profiles(dialect: str, reply: Schema, wanted: str, compiled: Compile) -> None:
    assert profiles_that_take(f"{dialect}/responses.reply", reply, compiled) == wanted.split()


def event(kind: str, **fields: JsonValue) -> Schema:
    return {"type": kind, "sequence_number": 0, **fields}


DELTA = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": "x", "logprobs": []}
UNNUMBERED = {"type": "response.output_text.delta", "delta": "x"}
FLAT_ERROR = {"code": None, "message": "m", "param": None}
EVENTS: list[tuple[str, Schema, str]] = [
    ("openai", event("response.completed", response=openai()), "documented actual"),
    ("openai", event("response.completed", response={"id": "r"}), "actual"),
    ("openai", event("response.completed"), ""),
    ("openai", event("response.output_text.delta", **DELTA), "documented actual"),
    ("openai", UNNUMBERED, "actual"),
    ("openai", event("response.output_text.delta"), ""),
    ("openai", event("response.output_item.done", output_index=0, item={"type": "mcp_call"}), "documented actual"),
    ("openai", event("response.output_item.done", output_index=0), ""),
    ("openai", event("response.reasoning.delta", anything=1), "documented actual"),
    ("openai", event("keepalive"), "documented actual"),
    ("openai", event("error", **FLAT_ERROR), "documented actual"),
    ("openai", event("error", error={"message": "m"}), "actual"),
    ("openai", {"sequence_number": 0}, ""),
    ("databricks", event("response.completed", response=databricks()), "documented actual"),
    ("databricks", event("response.completed", response=databricks(usage=USAGE, tools=[FLAT])), "actual"),
    ("databricks", event("response.output_text.delta", **DELTA), "documented actual"),
    ("databricks", UNNUMBERED, "actual"),
    ("databricks", event("response.output_text.delta", delta=1), ""),
]


@pytest.mark.parametrize(("dialect", "sent", "wanted"), EVENTS)
def test_an_event_is_valid_in_these_profiles(dialect: str, sent: Schema, wanted: str, compiled: Compile) -> None:
    assert profiles_that_take(f"{dialect}/responses.event", sent, compiled) == wanted.split()


def test_errors_are_those_of_chat() -> None:
    for dialect in ("openai", "databricks"):
        for profile in ("documented", "actual"):
            assert load(f"{dialect}/responses.error", profile) == load(f"{dialect}/chat.error", profile)
