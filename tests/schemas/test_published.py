"""What the hub emits is accepted by OpenAI's published schema, which the llm-comply package ships."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import jsonschema
import pytest

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema

from .conftest import Compile, FindErrors, SpoilBody

USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DETAILED = {
    **USAGE,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": -0.5, "bytes": None}]}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CITATION = {
    "type": "url_citation",
    "url_citation": {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1},
}


def reply(message: Schema | None = None, top: Schema | None = None, **choice: JsonValue) -> Schema:
    said = {"role": "assistant", "content": "hi", "refusal": None} | (message or {})
    one = {"index": 0, "message": said, "finish_reason": "stop", "logprobs": None} | choice
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [one]}
    return body | (top or {})


def event(delta: Schema, top: Schema | None = None, **choice: JsonValue) -> Schema:
    one = {"index": 0, "delta": delta, "finish_reason": None} | choice
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [one]}
    return body | (top or {})


REPLIES = [
    reply(),
    reply({"content": None, "tool_calls": [CALL, {**CALL, "id": "call_2"}]}, finish_reason="tool_calls"),
    reply({"content": None, "refusal": "no"}, finish_reason="content_filter"),
    reply({"annotations": [CITATION]}, {"usage": DETAILED, "service_tier": "default", "system_fingerprint": "fp"}),
    reply(
        {"content": None, "audio": {"id": "a", "expires_at": 1, "data": "aGk=", "transcript": "hi"}},
        finish_reason="length",
    ),
    reply({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, finish_reason="function_call"),
    reply({"reasoning_content": "hm", "reasoning_signature": "s"}, {"usage": USAGE}, native_finish_reason="eos_token"),
    reply(logprobs={"content": [TOKEN], "refusal": None}, extra_fields={"safetyRating": []}),
]
EVENTS = [
    event({"role": "assistant", "content": ""}),
    event({"content": "hi"}, {"usage": None}, logprobs={"content": [TOKEN], "refusal": None}),
    event(
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]}
    ),
    event({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
    event({"reasoning_content": "hm"}),
    event({"refusal": "no"}),
    event({}, finish_reason="stop", native_finish_reason="eos_token"),
    event({}, {"choices": [], "usage": DETAILED}),
]
BAD_REPLIES = [
    reply({"role": "user"}),
    reply({"content": []}),
    reply({"tool_calls": []}),
    reply({"tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
    reply(finish_reason="eos_token"),
    reply(finish_reason=None),
    reply(top={"object": "chat.completions"}),
    reply(top={"choices": []}),
    reply(top={"usage": None}),
    reply(top={"usage": {"prompt_tokens": 1}}),
    reply(top={"created": "now"}),
    reply(top={"id": ""}),
]
BAD_EVENTS = [
    event({}, {"choices": []}),
    event({}, {"choices": [], "usage": None}),
    event({"role": "user"}),
    event({"tool_calls": [{"id": "call_1"}]}),
    event({"content": []}),
    event({}, finish_reason="eos_token"),
    event({}, {"object": "chat.completion"}),
    event({}, {"usage": {"prompt_tokens": 1}}),
]


def json_schema(node: object) -> JsonValue:
    """OpenAPI 3.0 `nullable` in JSON Schema's words, beside a $ref too."""
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: json_schema(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def published(component: str) -> jsonschema.Draft202012Validator:
    spec = json.loads(files("llm_comply.specs").joinpath("openai_chat.json").read_text("utf-8"))
    components = json_schema(spec["components"])
    return jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{component}", "components": components})


KINDS = [
    ("hub/chat.reply", "CreateChatCompletionResponse", REPLIES, BAD_REPLIES),
    ("hub/chat.event", "CreateChatCompletionStreamResponse", EVENTS, BAD_EVENTS),
]


@pytest.mark.parametrize(("name", "component", "good", "bad"), KINDS)
def test_valid_objects_are_valid_in_the_published_schema(
    name: str, component: str, good: list[Schema], bad: list[Schema], errors: FindErrors
) -> None:
    for body in good:
        assert not errors(name, body), body
        assert not list(published(component).iter_errors(body)), body


@pytest.mark.parametrize(("name", "component", "good", "bad"), KINDS)
def test_invalid_objects_are_refused_by_the_hub(
    name: str, component: str, good: list[Schema], bad: list[Schema], compiled: Compile
) -> None:
    for body in bad:
        assert not compiled(name, "documented").is_valid(body), body


@pytest.mark.parametrize(("name", "component", "good", "bad"), KINDS)
def test_the_hub_is_never_laxer_than_the_published_schema(
    name: str, component: str, good: list[Schema], bad: list[Schema], compiled: Compile, spoils: SpoilBody
) -> None:
    """Every value of every good object is spoilt in turn: what the hub still takes, the published schema takes. Service
    tiers are left out: clients know more of them than the document."""
    taken = 0
    for body in good:
        for _, spoilt in spoils(body):
            if spoilt.get("service_tier") == body.get("service_tier") and compiled(name, "documented").is_valid(spoilt):
                taken += 1
                assert published(component).is_valid(spoilt), spoilt
    assert taken > 50
