"""What the hub emits in Responses is accepted by the published schema of Open Responses, which the llm-comply package
ships, and parsed by the OpenAI SDK's own models.

Three published vocabularies are narrower than what clients and providers speak, and one rule is a mistake:

    service_tier                  the hub lets any word through; the SDK's list grows with every release
    incomplete_details.reason     any text, as Open Responses has it; the SDK lists four, and parses others at run time
    reasoning.effort              `minimal` and `max` are OpenAI's; Open Responses does not list them
    text.format.schema            Open Responses types it as null
    items, tools, tool choices    those that run at the provider are open in the hub, and in the SDK's lists only
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, get_args

import jsonschema
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import Field, TypeAdapter, ValidationError

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, load

from .conftest import Compile, FindErrors, JsonPath, SpoilBody

USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 7,
}
TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97]}]}
CITATION = {"type": "url_citation", "url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}
TEXT = {"type": "output_text", "text": "hi", "annotations": [CITATION], "logprobs": [TOKEN]}
REFUSAL = {"type": "refusal", "refusal": "no"}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT, REFUSAL]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "f", "input": "x"}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "t"}],
    "content": [{"type": "reasoning_text", "text": "t"}],
    "encrypted_content": "e",
    "status": "completed",
}
TOOL = {"type": "function", "name": "f", "description": None, "parameters": {"type": "object"}, "strict": False}
FORMAT = {"type": "json_schema", "name": "n", "description": None, "schema": {"type": "object"}, "strict": True}


def reply(**changes: JsonValue) -> Schema:
    body: Schema = {
        "id": "resp_1", "object": "response", "created_at": 1, "completed_at": 2, "status": "completed",
        "incomplete_details": None, "model": "m", "previous_response_id": None, "instructions": None, "output": [],
        "error": None, "tools": [], "tool_choice": "auto", "truncation": "disabled", "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}}, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
        "top_logprobs": 0, "temperature": 1.0, "reasoning": None, "usage": None, "max_output_tokens": None,
        "max_tool_calls": None, "store": True, "background": False, "service_tier": "default", "metadata": {},
        "safety_identifier": None, "prompt_cache_key": None,
    }  # fmt: skip
    return body | changes


REPLIES = [
    reply(status="in_progress", completed_at=None),
    reply(output=[REASONING, MESSAGE, CALL], usage=USAGE, instructions="be brief", max_output_tokens=16),
    reply(tools=[TOOL], tool_choice={"type": "function", "name": "f"}, text={"format": FORMAT, "verbosity": "low"}),
    reply(
        tools=[TOOL],
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    ),
    reply(
        status="incomplete", incomplete_details={"reason": "content_filter"}, text={"format": {"type": "json_object"}}
    ),
    reply(status="failed", error={"code": "server_error", "message": "m"}, metadata={"k": "v"}),
    reply(reasoning={"effort": "low", "summary": "auto"}, previous_response_id="resp_0", safety_identifier="s"),
]
OPEN_REPLIES = [
    reply(output=[CUSTOM], tools=[{"type": "custom", "name": "c"}], tool_choice={"type": "custom", "name": "c"}),
    reply(output=[{"type": "image_generation_call", "id": "ig_1", "status": "completed"}]),
    reply(tools=[{"type": "web_search"}], tool_choice={"type": "image_generation"}),
    reply(reasoning={"effort": "minimal", "summary": None}, service_tier="priority"),
    reply(
        output=[{**MESSAGE, "content": [{**TEXT, "annotations": [{"type": "file_path", "file_id": "f", "index": 0}]}]}]
    ),
]
BAD_REPLIES = [
    reply(object="chat.completion"),
    reply(status="done"),
    reply(temperature=None),
    reply(service_tier=None),
    reply(created_at="now"),
    reply(usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}),
    reply(usage={key: value for key, value in USAGE.items() if key != "output_tokens_details"}),
    reply(error={"code": "upstream_timeout", "message": "m"}),
    reply(incomplete_details={"reason": 1}),
    reply(output=[{**MESSAGE, "role": "user"}]),
    reply(output=[{**MESSAGE, "content": "hi"}]),
    reply(output=[{**MESSAGE, "content": [{"type": "text", "text": "hi"}]}]),
    reply(output=[{**CALL, "arguments": {}}]),
    reply(output=[{"id": "x"}]),
    reply(tools=[{"type": "function", "function": {"name": "f"}}]),
    reply(text={}),
    reply(text={"format": {"type": "json_schema", "json_schema": {}}}),
]


def event(kind: str, **fields: JsonValue) -> Schema:
    return {"type": kind if kind == "error" else f"response.{kind}", "sequence_number": 0, **fields}


ITEM = {"item_id": "i", "output_index": 0}
PART = {**ITEM, "content_index": 0}
SUMMARY = {**ITEM, "summary_index": 0}
BEGUN = reply(status="in_progress", completed_at=None)
SEEN = {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "a", "logprob": -0.5}]}
FAULT = {"code": None, "message": "m", "param": None}
PROGRESS = [
    "code_interpreter_call.completed", "code_interpreter_call.in_progress", "code_interpreter_call.interpreting",
    "compaction.compacting", "file_search_call.completed", "file_search_call.in_progress", "file_search_call.searching",
    "image_generation_call.completed", "image_generation_call.generating", "image_generation_call.in_progress",
    "mcp_call.completed", "mcp_call.failed", "mcp_call.in_progress", "mcp_list_tools.completed",
    "mcp_list_tools.failed", "mcp_list_tools.in_progress", "web_search_call.completed", "web_search_call.in_progress",
    "web_search_call.searching",
]  # fmt: skip
EVENTS = [
    event("created", response=BEGUN),
    event("queued", response=reply(status="queued", completed_at=None)),
    event("in_progress", response=BEGUN),
    event("output_item.added", output_index=0, item={**MESSAGE, "status": "in_progress", "content": []}),
    event("content_part.added", **PART, part={**TEXT, "text": "", "annotations": []}),
    event("output_text.delta", **PART, delta="hi", logprobs=[]),
    event("output_text.delta", **PART, delta="hi", logprobs=[TOKEN]),
    event("output_text.annotation.added", **PART, annotation_index=0, annotation=CITATION),
    event("output_text.done", **PART, text="hi", logprobs=[]),
    event("content_part.done", **PART, part=TEXT),
    event("output_item.done", output_index=0, item=MESSAGE),
    event("refusal.delta", **PART, delta="no"),
    event("refusal.done", **PART, refusal="no"),
    event("content_part.done", **PART, part=REFUSAL),
    event("content_part.added", **PART, part={"type": "reasoning_text", "text": ""}),
    event("reasoning_text.delta", **PART, delta="hm"),
    event("reasoning_text.done", **PART, text="hm"),
    event("reasoning_summary_part.added", **SUMMARY, part={"type": "summary_text", "text": ""}),
    event("reasoning_summary_text.delta", **SUMMARY, delta="hm"),
    event("reasoning_summary_text.done", **SUMMARY, text="hm"),
    event("reasoning_summary_part.done", **SUMMARY, part={"type": "summary_text", "text": "hm"}),
    event("output_item.done", output_index=0, item=REASONING),
    event("output_item.added", output_index=1, item={**CALL, "arguments": "", "status": "in_progress"}),
    event("function_call_arguments.delta", **ITEM, delta="{"),
    event("function_call_arguments.done", **ITEM, arguments="{}", name="f"),
    event("completed", response=reply(output=[MESSAGE], usage=USAGE)),
    event("incomplete", response=reply(status="incomplete", incomplete_details={"reason": "max_output_tokens"})),
    event("failed", response=reply(status="failed", error={"code": "server_error", "message": "m"})),
    event("error", **FAULT, error={"type": "server_error", **FAULT}),
]
SDK_EVENTS = [
    event("output_text.delta", **PART, delta="hi", logprobs=[SEEN]),
    event("output_item.added", output_index=1, item={**CUSTOM, "input": ""}),
    event("custom_tool_call_input.delta", **ITEM, delta="x"),
    event("custom_tool_call_input.done", **ITEM, input="x"),
    event("mcp_call_arguments.delta", **ITEM, delta="{"),
    event("mcp_call_arguments.done", **ITEM, arguments="{}"),
    event("code_interpreter_call_code.delta", **ITEM, delta="x"),
    event("code_interpreter_call_code.done", **ITEM, code="x"),
    *(event(kind, **ITEM) for kind in PROGRESS),
    event("image_generation_call.partial_image", **ITEM, partial_image_b64="aGk=", partial_image_index=0),
    event("audio.delta", delta="aGk="),
    event("audio.done"),
    event("audio.transcript.delta", delta="hi"),
    event("audio.transcript.done"),
    event("shell_call_command.added", output_index=0, command_index=0, command="ls"),
    event("shell_call_command.delta", output_index=0, command_index=0, delta="l"),
    event("shell_call_command.done", output_index=0, command_index=0, command="ls"),
    event("shell_call_output_content.delta", **ITEM, command_index=0, delta={"stdout": "x"}),
    event(
        "shell_call_output_content.done",
        **ITEM,
        command_index=0,
        output=[
            {"outcome": {"type": "exit", "exit_code": 0}, "stdout": "x", "stderr": ""},
            {"outcome": {"type": "timeout"}, "stdout": "", "stderr": ""},
        ],
    ),
]
UNKNOWN_EVENTS = [event("reasoning.delta", anything=1), event("brand_new.thing")]
BAD_EVENTS = [
    {"type": "response.completed", "response": reply()},
    {"sequence_number": 0, "response": reply()},
    {"type": "ping", "sequence_number": 0},
    event("created"),
    event("completed", response={"id": "resp_1"}),
    event("output_text.delta", **PART, delta="hi"),
    event("output_text.delta", **ITEM, delta="hi", logprobs=[]),
    event("output_text.delta", **PART, delta=["hi"], logprobs=[]),
    event("output_text.done", **PART, logprobs=[]),
    event("content_part.added", **PART, part={"type": "text", "text": ""}),
    event("output_item.added", output_index=0),
    event("function_call_arguments.done", **ITEM),
    event("reasoning_summary_text.delta", **PART, delta="hm"),
    event("error", **FAULT),
    event("error", error={"type": "server_error", **FAULT}),
]


@cache
def components() -> Schema:
    """The schemas of Open Responses by name, with its one mistake put right."""
    spec = json.loads(files("llm_comply.specs").joinpath("openresponses.json").read_text("utf-8"))
    found: Schema = spec["components"]["schemas"]
    found["JsonSchemaResponseFormat"]["properties"]["schema"] = {"type": "object"}
    return found


@cache
def open_responses(name: str) -> jsonschema.Draft202012Validator:
    ref = f"#/components/schemas/{name}"
    return jsonschema.Draft202012Validator({"$ref": ref, "components": {"schemas": components()}})


@cache
def open_events() -> dict[str, str]:
    """Type of event -> its schema in Open Responses."""
    named = {name: rule for name, rule in components().items() if name.endswith("StreamingEvent")}
    return {rule["properties"]["type"]["enum"][0]: name for name, rule in named.items()}


MODEL_UNION: Any = get_args(ResponseStreamEvent)[0]
MODELS = get_args(MODEL_UNION)
SDK_TYPES = {get_args(model.model_fields["type"].annotation)[0] for model in MODELS}
UNION: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BY_TYPE: TypeAdapter[Any] = TypeAdapter(Annotated[MODEL_UNION, Field(discriminator="type")])
"""The same union, told apart by type: quicker, and its errors speak of one model."""


def parses(adapter: Callable[[JsonValue], object], body: object) -> bool:
    try:
        adapter(body)
    except ValidationError:
        return False
    return True


def test_valid_replies_are_valid_in_every_published_form(errors: FindErrors) -> None:
    for body in REPLIES:
        assert not errors("hub/responses.reply", body), body
        assert not list(open_responses("ResponseResource").iter_errors(body)), body
        Response.model_validate(body)


def test_replies_beyond_open_responses_are_valid_in_the_sdk(errors: FindErrors) -> None:
    for body in OPEN_REPLIES:
        assert not errors("hub/responses.reply", body), body
        Response.model_validate(body)
        assert not open_responses("ResponseResource").is_valid(body), "no longer beyond it"


def test_invalid_replies_are_refused(compiled: Compile) -> None:
    for body in BAD_REPLIES:
        assert not compiled("hub/responses.reply", "documented").is_valid(body), body


def test_no_key_of_a_reply_may_be_missing(compiled: Compile) -> None:
    body = reply()
    assert sorted(load("hub/responses.reply")["required"]) == sorted(body)
    assert sorted(components()["ResponseResource"]["required"]) == sorted(body)
    for key in body:
        rest = {name: value for name, value in body.items() if name != key}
        assert not compiled("hub/responses.reply", "documented").is_valid(rest), key


OPEN_TYPES = {"output", "tools", "tool_choice", "item"}


def widened(path: JsonPath) -> bool:
    """Whether the spoilt value is one of those that the hub takes and a published vocabulary does not."""
    holder = next((part for part in reversed(path[:-1]) if isinstance(part, str)), None)
    if "service_tier" in path or "effort" in path or path[-2:] == ("incomplete_details", "reason"):
        return True
    return path[-1] == "type" and holder in OPEN_TYPES


@pytest.mark.parametrize("number", range(len(REPLIES)))
def test_the_hub_is_never_laxer_than_the_published_schemas(number: int, compiled: Compile, spoils: SpoilBody) -> None:
    """Every value of every good reply is spoilt in turn: what the hub still takes, both authorities take."""
    taken = 0
    for path, spoilt in spoils(REPLIES[number]):
        if compiled("hub/responses.reply", "documented").is_valid(spoilt) and not widened(path):
            taken += 1
            assert open_responses("ResponseResource").is_valid(spoilt), (path, spoilt)
            Response.model_validate(spoilt)
    assert taken > 20


def test_valid_events_are_valid_in_every_published_form(errors: FindErrors) -> None:
    for body in [*EVENTS, *SDK_EVENTS]:
        assert not errors("hub/responses.event", body), body
        assert UNION.validate_python(body).type == body["type"]
        BY_TYPE.validate_python(body)
    for body in EVENTS:
        if body["type"] not in ("response.reasoning_text.delta", "response.reasoning_text.done"):  # other names there
            assert not list(open_responses(open_events()[body["type"]]).iter_errors(body)), body


def test_the_samples_have_every_event_that_the_sdk_knows() -> None:
    assert {body["type"] for body in [*EVENTS, *SDK_EVENTS]} == SDK_TYPES


def test_unknown_events_are_valid(errors: FindErrors) -> None:
    for body in UNKNOWN_EVENTS:
        assert not errors("hub/responses.event", body), body
        assert body["type"] not in SDK_TYPES


def test_invalid_events_are_refused(compiled: Compile) -> None:
    for body in BAD_EVENTS:
        assert not compiled("hub/responses.event", "documented").is_valid(body), body


def test_the_hub_is_never_laxer_than_the_sdks_events(compiled: Compile, spoils: SpoilBody) -> None:
    """What the hub still takes of a spoilt event, the SDK's model of its type parses."""
    taken = 0
    for body in [*EVENTS, *SDK_EVENTS]:
        for path, spoilt in spoils({**body, "response": BEGUN} if "response" in body else body):
            known = spoilt.get("type") == body["type"]
            if known and compiled("hub/responses.event", "documented").is_valid(spoilt) and not widened(path):
                taken += 1
                assert parses(BY_TYPE.validate_python, spoilt), (path, spoilt)
    assert taken > 400


def test_events_contain_the_same_response_as_replies() -> None:
    for dialect in ("hub", "openai", "databricks"):
        whole, piece = load(f"{dialect}/responses.reply"), load(f"{dialect}/responses.event")
        assert piece["$defs"]["response"] == {key: whole[key] for key in ("type", "required", "properties")}
        for name, rule in whole["$defs"].items():
            assert piece["$defs"][name] == rule, (dialect, name)
