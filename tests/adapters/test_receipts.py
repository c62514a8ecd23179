"""Receipts have no holes: for every client, every provider and every bridge between them, what differs between what one
side sent and what the other side got is in the receipt, and what the receipt says differs."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.samples import load_sample
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import request_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.schemas import load
from tests.dialects import DIALECTS, VARIANTS
from tools.fuzz.receipt_holes import find_holes, join_events

SERVED = {protocol for dialect in dialects.values() for protocol in dialect.served}
CALLED = {protocol for dialect in dialects.values() for protocol in dialect.called}
BRIDGED = [
    (protocol, bridge.called)
    for protocol, bridges in BRIDGES.items()
    for bridge in bridges
    if protocol in SERVED and bridge.called in CALLED
]
DIRECT = [(protocol, protocol) for protocol in ("chat", "responses", "messages", "completions", "embeddings")]
DIRECT = [(spoken, called) for spoken, called in DIRECT if spoken in SERVED and called in CALLED]
PROTOCOLS = pytest.mark.parametrize(("spoken", "called"), [*DIRECT, *BRIDGED])
POLICY = Policy(unsupported="drop", out_of_range="clamp", emulate_completions=True)
STREAMED = ("chat", "responses", "messages", "completions")
SETTINGS = frozenset(load("hub/responses.request")["properties"]) | {"background", "completed_at", "incomplete_details"}
ENVELOPE = frozenset({"created", "created_at", "finish_reason", "native_finish_reason", "stop_reason", "event"})

CONVERSATIONS: dict[str, list[JsonObject]] = {
    "chat": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "a question"},
        {"role": "user", "content": [{"type": "text", "text": "a part"}, {"type": "text", "text": "another"}]},
        {"role": "assistant", "content": "an answer"},
        {"role": "assistant", "content": "named", "name": "someone"},
        {"role": "assistant", "content": "thought", "reasoning_content": "because"},
        {"role": "assistant", "content": "partly", "refusal": "not that"},
    ],
    "responses": [
        {"type": "message", "role": "user", "content": "a question"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a part"}]},
        {"type": "message", "role": "developer", "content": "be brief"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "an answer"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ],
    "messages": [
        {"role": "user", "content": "a question"},
        {"role": "user", "content": [{"type": "text", "text": "a part"}, {"type": "text", "text": "another"}]},
        {"role": "user", "content": [{"type": "text", "text": "marked", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": "an answer"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "because", "signature": "signed"}]},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "said"}, {"type": "redacted_thinking", "data": "sealed"}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "document",
                    "title": "titled",
                    "source": {"type": "text", "media_type": "text/plain", "data": "a document"},
                },
                {
                    "type": "search_result",
                    "title": "found",
                    "source": "somewhere",
                    "content": [{"type": "text", "text": "a result"}],
                },
            ],
        },
    ],
}
SAYS = {
    "chat": "messages",
    "messages": "messages",
    "responses": "input",
    "completions": "prompt",
    "embeddings": "input",
}
HEADERS = {"anthropic-version": "2023-06-01"}
VENDOR: list[JsonValue] = ["vendor text", 4711, 0.4711, {"inner": "vendor inner"}, ["vendor item"]]


class Pair(NamedTuple):
    """A client and a provider."""

    client: str
    profile: str
    spoken: str
    provider: str
    provider_profile: str
    called: str

    def prepare(self, request: JsonObject) -> Attempt:
        dialect = dialects[self.client]
        route = Route(dialect, self.spoken, dialect.served[self.spoken], self.profile)
        path = dialect.paths[self.spoken][0].replace("{name}", "m")
        pipeline = Pipeline(route, Call("POST", path, {}, dict(dialect.query), HEADERS))
        pipeline.receive(orjson.dumps(request))
        pipeline.start_conversation()
        target = Target("upstream", profile=self.provider_profile, policy=POLICY, kind="provisioned-throughput")
        return pipeline.prepare(plan_target("provider", dialects[self.provider], [self.called], target))


@cache
def pairs(spoken: str, called: str) -> list[Pair]:
    clients = [(name, profile) for name, profile in VARIANTS if spoken in dialects[name].served]
    providers = [(name, profile) for name, profile in VARIANTS if called in dialects[name].called]
    return [Pair(*client, spoken, *provider, called) for client in clients for provider in providers]


def simple_values(rule: JsonObject) -> list[Any]:
    """Some values that the schema of a field may accept."""
    if "const" in rule or "enum" in rule:
        return [rule["const"]] if "const" in rule else [one for one in rule["enum"] if one is not None]
    low, high = rule.get("minimum", 1), rule.get("maximum", 64)
    return [low, high, 17, 0.25, True, "some text", ["some item"], {"some": "value"}]


@cache
def fields(client: str, protocol: str, profile: str) -> list[tuple[str, Any]]:
    """Fields of a client's requests with values that its schema accepts."""
    validator = request_validator(client, protocol, profile)
    assert validator is not None
    base = load_sample(client, protocol)["request"]
    properties = validator.schema["properties"]
    skipped = {"model", "stream", "background", "previous_response_id", "conversation", "prompt", *SAYS.values()}
    made = [(name, value) for name, rule in properties.items() if name not in skipped for value in simple_values(rule)]
    return [(name, value) for name, value in made if validator.accepts({**base, name: value})]


@st.composite
def requests(draw: st.DrawFn, pair: Pair, stream: bool | None = None) -> JsonObject:
    body: JsonObject = deepcopy(load_sample(pair.client, pair.spoken)["request"])
    validator = request_validator(pair.client, pair.spoken, pair.profile)
    assert validator is not None
    some = draw(st.lists(st.sampled_from(fields(pair.client, pair.spoken, pair.profile)), max_size=6))
    turns = CONVERSATIONS.get(pair.spoken)
    said = draw(st.lists(st.sampled_from(turns), max_size=4)) if turns else []
    key = SAYS[pair.spoken]
    candidates: list[JsonObject] = [{name: value} for name, value in some]
    if turns is not None:
        candidates.append({key: [*said, {"role": "user", "content": "the last question"}]})
    if stream is not None:
        candidates.append({"stream": stream})
    if draw(st.booleans()):
        candidates.append({"x_vendor": draw(st.sampled_from(VENDOR))})
    for candidate in candidates:
        if validator.accepts({**body, **candidate}):
            body |= deepcopy(candidate)
    return body


def hold(spoken: str, called: str, law: Any) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    strategy = st.tuples(st.sampled_from(pairs(spoken, called)), st.data())
    settings(suppress_health_check=checks)(given(strategy)(law))()


@PROTOCOLS
def test_requests(spoken: str, called: str) -> None:
    def law(drawn: tuple[Pair, st.DataObject]) -> None:
        pair, data = drawn
        request = data.draw(requests(pair))
        try:
            attempt = pair.prepare(request)
        except Fault:
            return  # refused by name
        calls = attempt.calls
        if len(calls) > 1:
            return  # each call has a part of the inputs
        receipt = calls[0].receipt
        exempt = frozenset({"model"})
        assert find_holes(request, calls[0].call.body, receipt.changes, receipt.unmap, exempt=exempt) == []

    hold(spoken, called, law)


# Replies


def objects(value: JsonValue, path: Path = ()) -> list[Path]:
    """The paths of the objects in a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    own: list[Path] = [path] if isinstance(value, dict) else []
    return [*own, *(one for key, child in items for one in objects(child, (*path, key)))]


@st.composite
def additions(draw: st.DrawFn, body: JsonObject) -> JsonObject:
    """The body, where some objects have keys of the provider's own."""
    body = deepcopy(body)
    for number, path in enumerate(draw(st.lists(st.sampled_from(objects(body)), max_size=3))):
        holder: Any = body
        for part in path:
            holder = holder[part]
        holder[f"x_vendor_{number}"] = draw(st.sampled_from(VENDOR))
    return body


REPLIES: dict[str, list[JsonObject]] = {
    "chat": [
        {"service_tier": "flex", "system_fingerprint": "fp_1"},
        {"choices": [{"index": 0, "finish_reason": "length", "logprobs": None,
                      "message": {"role": "assistant", "content": "cut off", "reasoning_content": "a thought"}}]},
        {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None,
                      "tool_calls": [{"id": "call_9", "type": "function",
                                      "function": {"name": "finder", "arguments": '{"deep": "value"}'}}]}}]},
    ],
    "responses": [
        {"service_tier": "flex", "metadata": {"some": "metadata"}},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ],
    "messages": [
        {"stop_reason": "max_tokens"},
        {"stop_reason": "stop_sequence", "stop_sequence": "the end"},
        {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio", "explanation": "not that"}},
        {"content": [{"type": "thinking", "thinking": "a thought", "signature": "signed"},
                     {"type": "text", "text": "so"}]},
        {"content": [{"type": "tool_use", "id": "toolu_9", "name": "finder", "input": {"deep": "value"}}],
         "stop_reason": "tool_use"},
        {"content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                      "input": {"query": "searched"}}]},
    ],
    "completions": [{"system_fingerprint": "fp_1"}],
}  # fmt: skip


@PROTOCOLS
def test_replies(spoken: str, called: str) -> None:
    def law(drawn: tuple[Pair, st.DataObject]) -> None:
        pair, data = drawn
        base = load_sample(pair.provider, called)["reply"]
        beside = data.draw(st.sampled_from([{}, *REPLIES.get(called, ())]))
        reply = data.draw(additions({**base, **beside}))
        whole = {"stream": False} if spoken in STREAMED else {}
        attempt = pair.prepare(load_sample(pair.client, spoken)["request"] | whole)
        known = len(attempt.receipt.changes)
        attempt.start_reply(0, 200, {"content-type": "application/json"})
        attempt.feed(0, orjson.dumps(reply))
        output = attempt.close(0)
        if output.record is not None:
            output = attempt.confirm_save()
        if attempt.outcome.fault is not None:
            return
        changes = attempt.receipt.changes[known:]
        assert find_holes(reply, json.loads(output.data), changes, exempt=exempt_keys(pair)) == []

    hold(spoken, called, law)


def exempt_keys(pair: Pair) -> frozenset[str]:
    """The keys of a reply that may differ: a response repeats the settings of a request."""
    is_response = "responses" in (pair.spoken, pair.called)
    own = {"service_tier", "metadata"} if pair.called == "responses" or pair.spoken == "responses" else set()
    return ENVELOPE | ((SETTINGS - own) if is_response else frozenset())


@pytest.mark.parametrize(("spoken", "called"), [pair for pair in [*DIRECT, *BRIDGED] if pair[1] in STREAMED])
def test_streams(spoken: str, called: str) -> None:
    def law(drawn: tuple[Pair, st.DataObject]) -> None:
        pair, data = drawn
        events = data.draw(additions({"events": load_sample(pair.provider, called)["events"]}))["events"]
        request = load_sample(pair.client, spoken)["request"] | {"stream": True}
        attempt = pair.prepare(request)
        if not attempt.calls[0].call.body.get("stream"):
            return  # what comes is a whole reply
        known = len(attempt.receipt.changes)
        raw = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
        attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
        output = attempt.feed(0, raw)
        written = output.data + attempt.close(0).data
        if attempt.outcome.fault is not None:
            return
        items = [item.data for item in Framer().feed(written) if isinstance(item, Event)]
        answer = [json.loads(item) for item in items if item != b"[DONE]"]
        changes = attempt.receipt.changes[known:]
        assert find_holes(join_events(events), join_events(answer), changes, exempt=exempt_keys(pair)) == []

    hold(spoken, called, law)


def test_every_dialect_takes_part() -> None:
    drawn = [pair for one in (*DIRECT, *BRIDGED) for pair in pairs(*one)]
    assert {pair.client for pair in drawn} == {pair.provider for pair in drawn} == set(DIALECTS)


@pytest.mark.parametrize(("before", "after", "found"), [
    ({"seed": 7}, {}, ["seed = 7 was lost in silence"]),
    ({}, {"seed": 7}, ["seed = 7 appeared in silence"]),
    ({"seed": 7}, {"seed": 8}, ["seed = 7 was lost in silence", "seed = 8 appeared in silence"]),
    ({"messages": [{"content": "hi"}]}, {"input": "hi"}, []),
])  # fmt: skip
def test_a_difference_without_a_change_is_a_hole(before: JsonObject, after: JsonObject, found: list[str]) -> None:
    assert find_holes(before, after, []) == found
