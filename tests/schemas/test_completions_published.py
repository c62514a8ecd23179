"""What the hub emits in completions is accepted by OpenAI's published schema, which the llm-comply package ships, and
parsed by its SDK. One thing is wider: the first token of an echoed prompt has null for its log probability, as
the service itself sends it, and the document does not say."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import jsonschema
import pytest
from openai.types import Completion

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema

from .conftest import Compile, FindErrors, SpoilBody

USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DETAILED = {
    **USAGE,
    "completion_tokens_details": {"reasoning_tokens": 2},
    "prompt_tokens_details": {"cached_tokens": 1},
}
LOGPROBS = {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5, "b": -1.5}], "text_offset": [0]}


def reply(top: Schema | None = None, **choice: JsonValue) -> Schema:
    one = {"index": 0, "text": "hi", "logprobs": None, "finish_reason": "stop"} | choice
    body = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [one]}
    return body | (top or {})


REPLIES = [
    reply(),
    reply(text="", finish_reason="length", native_finish_reason="max_tokens"),
    reply({"usage": USAGE, "system_fingerprint": "fp"}, finish_reason="content_filter"),
    reply({"usage": DETAILED}, logprobs=LOGPROBS),
    reply({"choices": [reply()["choices"][0], reply(index=1)["choices"][0]]}),
]
EVENTS = [*REPLIES, reply({"choices": [], "usage": DETAILED})]
UNFINISHED = [reply(finish_reason=None), reply({"usage": None}, finish_reason=None)]
"""Events that are not a choice's last: the document has one schema for both sides, and there the reason is required."""
BAD_REPLIES = [
    reply(finish_reason="tool_calls"),
    reply(finish_reason=None),
    reply(text=None),
    reply(text=["hi"]),
    reply(index=-1),
    reply(logprobs={"content": [], "tokens": "a"}),
    reply({"object": "chat.completion"}),
    reply({"choices": []}),
    reply({"usage": None}),
    reply({"usage": {"prompt_tokens": 1}}),
    reply({"created": "now"}),
    reply({"id": ""}),
]
BAD_EVENTS = [
    reply({"choices": []}),
    reply({"choices": [], "usage": None}),
    reply(finish_reason="eos_token"),
    reply(text=None),
    reply({"object": "text_completion.chunk"}),
]


def json_schema(node: object) -> JsonValue:
    """OpenAPI 3.0 `nullable` in JSON Schema's words."""
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: json_schema(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def published() -> jsonschema.Draft202012Validator:
    spec = json.loads(files("llm_comply.specs").joinpath("openai_chat.json").read_text("utf-8"))
    components = json_schema(spec["components"])
    name = "#/components/schemas/CreateCompletionResponse"
    return jsonschema.Draft202012Validator({"$ref": name, "components": components})


SIDES = [("reply", REPLIES, BAD_REPLIES), ("event", EVENTS, BAD_EVENTS)]


@pytest.mark.parametrize(("side", "good", "bad"), SIDES)
def test_valid_objects_are_valid_in_every_published_form(
    side: str, good: list[Schema], bad: list[Schema], errors: FindErrors
) -> None:
    for body in good:
        assert not errors(f"hub/completions.{side}", body), body
        assert not list(published().iter_errors(body)), body
        Completion.model_validate(body)


def test_events_without_a_finish_reason_are_valid_in_the_hub(errors: FindErrors) -> None:
    for body in UNFINISHED:
        assert not errors("hub/completions.event", body), body


@pytest.mark.parametrize(("side", "good", "bad"), SIDES)
def test_invalid_objects_are_refused_by_the_hub(
    side: str, good: list[Schema], bad: list[Schema], compiled: Compile
) -> None:
    for body in bad:
        assert not compiled(f"hub/completions.{side}", "documented").is_valid(body), body


def test_the_hub_is_never_laxer_than_the_published_schema(compiled: Compile, spoils: SpoilBody) -> None:
    taken = 0
    for body in REPLIES:
        for path, spoilt in spoils(body):
            if "logprobs" not in path[:-1] and compiled("hub/completions.reply", "documented").is_valid(spoilt):
                taken += 1
                assert published().is_valid(spoilt), spoilt
    assert taken > 50


def test_the_first_token_of_an_echo_has_no_log_probability(errors: FindErrors) -> None:
    echoed = reply(logprobs={**LOGPROBS, "token_logprobs": [None], "top_logprobs": [None]})
    assert not errors("hub/completions.reply", echoed)
