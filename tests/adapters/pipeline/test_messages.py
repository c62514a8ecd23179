"""Messages through the pipeline: whole replies, streams, and one instead of the other."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Policy
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.pipeline import Attempt, Pipeline
from dragoman.adapters.routes import Route
from tests.adapters.messages.streaming import encode, events_of

from .conftest import CreatePlan

REQUEST: JsonObject = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]}
MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1, {}]}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 5},
}
EVENTS = restream_message(MESSAGE)


HEADERS = {"anthropic-version": "2023-06-01"}


def run(plan: CreatePlan, reply: bytes, policy: Policy | None = None, **request: Any) -> tuple[Attempt, bytes]:
    dialect = dialects["anthropic"]
    route = Route(dialect, "messages", dialect.served["messages"], "actual")
    pipeline = Pipeline(route, Call("POST", "/v1/messages", {}, headers=HEADERS), has_store=False)
    pipeline.receive(orjson.dumps({**REQUEST, **request}))
    attempt = pipeline.prepare(plan("anthropic", "messages", policy=policy))
    (call,) = attempt.calls
    kind = "application/json" if reply.startswith(b"{") else "text/event-stream"
    attempt.start_reply(call.number, 200, {"content-type": kind})
    written = b"".join(output.data for output in (attempt.feed(call.number, reply), attempt.close(call.number, None)))
    return attempt, written


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("comes_as_stream", [False, True])
def test_a_client_gets_what_it_asked_for_with_its_usage(
    plan: CreatePlan, is_stream: bool, comes_as_stream: bool
) -> None:
    reply = encode(*EVENTS) if comes_as_stream else orjson.dumps(MESSAGE)
    attempt, written = run(plan, reply, stream=is_stream)
    assert attempt.outcome.state == "complete", attempt.outcome.fault
    assert attempt.answer.usage == MESSAGE["usage"]
    assert (events_of(written) == EVENTS) if is_stream else (orjson.loads(written) == MESSAGE)


def test_usage_under_way_is_completed_by_the_last_counts(plan: CreatePlan) -> None:
    """`message_delta` need not repeat the counts of `message_start`."""
    events = [*EVENTS[:-2], {**EVENTS[-2], "usage": {"output_tokens": 5, "input_tokens": None}}, EVENTS[-1]]
    attempt, _ = run(plan, encode(*events), stream=True)
    assert attempt.answer.usage == MESSAGE["usage"]


def test_a_stream_that_breaks_ends_with_an_error_event(plan: CreatePlan) -> None:
    attempt, written = run(plan, encode(*EVENTS[:-2]), stream=True)
    assert attempt.outcome.state == "failed"
    assert [event["type"] for event in events_of(written)][-1] == "error"


def test_a_message_is_held_to_its_request(plan: CreatePlan) -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    choice = {"tools": tools, "tool_choice": {"type": "none"}}
    attempt, _ = run(plan, orjson.dumps(MESSAGE), **choice)
    assert [change.before for change in attempt.receipt.changes] == [("tool_choice",)]
    failed, _ = run(plan, orjson.dumps(MESSAGE), Policy(replies="strict"), **choice)
    assert failed.outcome.state == "failed"
    failed, written = run(plan, encode(*EVENTS), Policy(replies="strict"), stream=True, **choice)
    assert [event["type"] for event in events_of(written)][-2:] == ["message_delta", "error"]
