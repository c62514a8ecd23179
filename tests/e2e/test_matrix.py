"""Every provider x streamed or not x what it may do: what reaches the client is always valid, or an explicit error.

The rows are generated. Replies and events are checked against our own openai schemas and against the OpenAPI document
that OpenAI publishes, which llm-comply ships.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

import aiohttp
import jsonschema_rs
import pytest

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS

from .house import House

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_weather", "get_time")
]
ANSWERS = {  # behaviour: finish reason
    "text": "stop",
    "tools": "tool_calls",
    "parallel-tools": "tool_calls",
    "reasoning": "stop",
    "length": "length",
    "content-filter": "content_filter",
    "refusal": "stop",
    "json": "stop",
    "role-every-delta": "stop",
    "list-content": "stop",
    "empty-choices": "stop",
    "usage-every-chunk": "stop",
    "usage-in-last": "stop",
    "created-varies": "stop",
    "finish-stop-with-tools": "tool_calls",
    "empty-tool-calls": "stop",
    "arguments-object": "tool_calls",
    "no-index": "tool_calls",
    "repeated-ids": "tool_calls",
    "unknown-finish": "stop",
    "split-utf8": "stop",
    "crlf": "stop",
    "cr": "stop",
    "bom": "stop",
    "comments": "stop",
    "multiline-data": "stop",
    "bare-json": "stop",
    "no-done": "stop",
    "two-done": "stop",
    "after-done": "stop",
    "json-for-stream": "stop",
    "gzip": "stop",
}
FAULTS = {  # behaviour: status of a whole reply, or of a stream that fails before its first event
    "status-400": 400,
    "status-403": 502,
    "status-404": 404,
    "status-408": 504,
    "status-413": 413,
    "status-422": 422,
    "status-429": 429,
    "status-500": 500,
    "status-502": 502,
    "status-503": 503,
    "status-504": 504,
    "status-529": 503,
    "rate-limit": 429,
    "cut-before": 502,
    "html": 502,
    "not-json": 502,
    "empty": 502,
    "redirect": 502,
    "garbage": 502,
    "gzip-bomb": 502,
}
BROKEN = ("cut", "cut-clean", "malformed-event", "bare-text", "error-event", "huge-event")
SPECIAL = {"mindie": {"stop_sequence": 502, "stop_sequence-partial": 502}}


@lru_cache(maxsize=1)
def published() -> JsonValue:
    """The components of OpenAI's published description, nulls said in JSON Schema's way."""
    spec = json.loads(files("llm_comply").joinpath("specs/openai_chat.json").read_text("utf-8"))
    return nullable(spec["components"])


def nullable(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [nullable(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: nullable(one) for key, one in value.items()}
    return {"anyOf": [made, {"type": "null"}]} if made.pop("nullable", None) is True else made


@lru_cache(maxsize=2)
def published_judge(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": published()})


def check(body: JsonValue, side: str) -> None:
    name = {"reply": "CreateChatCompletionResponse", "event": "CreateChatCompletionStreamResponse"}[side]
    assert [v.message for v in load_validator(f"hub/chat.{side}").violations(body)] == []
    assert [v.message for v in load_validator(f"openai/chat.{side}").violations(body)] == []
    assert [error.message for error in published_judge(name).iter_errors(body)] == []


def check_error(body: JsonValue) -> None:
    assert [v.message for v in load_validator("openai/chat.error").violations(body)] == []
    assert body["error"]["message"]


async def ask(house: House, dialect: str, behaviour: str, stream: bool) -> tuple[int, str, bytes]:
    body = {
        "model": dialect,
        "messages": [{"role": "user", "content": f"fake:{behaviour} go"}],
        "tools": TOOLS,
        "stream": stream,
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{house.base_url}/chat/completions", json=body) as response,
    ):
        return response.status, response.content_type, await response.read()


def events_of(raw: bytes) -> list[JsonValue]:
    assert raw.endswith(b"\n\n")
    datas = [event.removeprefix(b"data: ") for event in raw.split(b"\n\n")[:-1]]
    return [data if data == b"[DONE]" else json.loads(data) for data in datas]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers_whole(house: House, dialect: str) -> None:
    for behaviour, finish in ANSWERS.items():
        status, kind, raw = await ask(house, dialect, behaviour, stream=False)
        assert (status, kind) == (200, "application/json"), (behaviour, raw)
        body = json.loads(raw)
        check(body, "reply")
        assert body["choices"][0]["finish_reason"] == finish, behaviour


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers_streamed(house: House, dialect: str) -> None:
    for behaviour, finish in ANSWERS.items():
        status, kind, raw = await ask(house, dialect, behaviour, stream=True)
        assert (status, kind) == (200, "text/event-stream"), (behaviour, raw)
        events = events_of(raw)
        assert events.count(b"[DONE]") == 1, behaviour
        assert events[-1] == b"[DONE]"
        for event in events[:-1]:
            check(event, "event")
        choices = [choice for event in events[:-1] for choice in event["choices"]]
        assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == [finish], behaviour
        assert [choice["delta"]["role"] for choice in choices if "role" in choice["delta"]] == ["assistant"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_failures_before_the_first_event_keep_their_status(house: House, dialect: str, stream: bool) -> None:
    for behaviour, expected in (FAULTS | SPECIAL.get(dialect, {})).items():
        if stream and behaviour in ("gzip-bomb", *SPECIAL.get(dialect, {})):
            continue  # text came before it: see the broken streams
        status, kind, raw = await ask(house, dialect, behaviour, stream)
        assert (status, kind) == (expected, "application/json"), (behaviour, status, raw[:300])
        check_error(json.loads(raw))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_failures_after_the_first_event_are_error_events(house: House, dialect: str) -> None:
    for behaviour in (*BROKEN, *SPECIAL.get(dialect, {})):
        status, kind, raw = await ask(house, dialect, behaviour, stream=True)
        assert (status, kind) == (200, "text/event-stream"), (behaviour, raw)
        events = events_of(raw)
        assert b"[DONE]" not in events, behaviour
        for event in events[:-1]:
            check(event, "event")
        check_error(events[-1])
