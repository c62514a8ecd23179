"""The short way answers what a plain exchange needs, and nothing else. That it answers the same is a law of the
fuzzer."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Target
from dragoman.adapters.pipeline import SingleCall, begin_call, has_plain_head, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.samples import load_sample
from tests.tables import for_each

MESSAGES = [{"role": "user", "content": "hi"}]
ASKED: dict[str, JsonObject] = {
    "chat": {"messages": MESSAGES},
    "messages": {"messages": MESSAGES, "max_tokens": 5},
    "completions": {"prompt": "hi"},
    "responses": {"input": [{"role": "user", "content": "hi"}]},
}
JSON = {"content-type": "application/json"}
PAIRS = [
    (client, provider, protocol)
    for client in dialects
    for provider in dialects
    for protocol in dialects[client].served
    if protocol in dialects[provider].called and protocol in ASKED
]


def begin(
    client: str, provider: str, protocol: str, *, called: str = "", has_store: bool = False, **changes: Any
) -> SingleCall | None:
    dialect = dialects[client]
    route = Route(dialect, protocol, dialect.served[protocol], dialect.served_profile)
    body = {"model": "m", **ASKED[protocol], **changes}
    call = Call("POST", "/", body, dict(dialect.query), {"anthropic-version": "2023-06-01"})
    plan = plan_target("p", dialects[provider], [called or protocol], Target("up"))
    return begin_call(route, call, plan, "id", has_store=has_store)


@for_each(("client", "provider", "protocol"), PAIRS)
def test_a_plain_exchange_of_every_dialect_is_answered(client: str, provider: str, protocol: str) -> None:
    single = begin(client, provider, protocol, stream=False)
    assert single is not None
    reply = load_sample(provider, protocol)["reply"]
    found = single.take_reply(JSON, orjson.dumps(reply))
    assert found is not None
    assert found.status == 200
    assert orjson.loads(found.data)


def make_chat(**changes: Any) -> SingleCall | None:
    return begin("openai", "openai", "chat", **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"stream": True},
        {"temperature": "hot"},
        {"messages": []},
        {"tool_choice": {"type": "function", "function": {"name": "x"}}},
    ],
    ids=str,
)
def test_what_a_request_may_need_more_for_is_left(changes: JsonObject) -> None:
    assert make_chat(**changes) is None


@pytest.mark.parametrize("called", ["responses", "chat", "messages"])
def test_a_response_that_nobody_keeps_is_answered(called: str) -> None:
    provider = "anthropic" if called == "messages" else "openai"
    single = begin("openai", provider, "responses", called=called, has_store=True, store=False, stream=False)
    assert single is not None
    found = single.take_reply(JSON, orjson.dumps(load_sample(provider, called)["reply"]))
    assert found is not None
    response = orjson.loads(found.data)
    assert (response["status"], response["store"], response["previous_response_id"]) == ("completed", False, None)
    assert found.record is None


@pytest.mark.parametrize("called", ["responses", "chat", "messages"])
def test_a_response_that_is_kept_is_answered_with_its_record(called: str) -> None:
    provider = "anthropic" if called == "messages" else "openai"
    single = begin("openai", provider, "responses", called=called, has_store=True, stream=False)
    assert single is not None and single.keeps
    found = single.take_reply(JSON, orjson.dumps(load_sample(provider, called)["reply"]))
    assert found is not None and found.record is not None
    response = orjson.loads(found.data)
    assert (response["status"], response["store"], response["id"]) == ("completed", True, found.record.id)
    assert (found.record.provider, found.record.input) == ("p", ASKED["responses"]["input"])
    assert found.record.response == response


@pytest.mark.parametrize(
    "changes",
    [
        {"has_store": True, "stream": True},
        {"has_store": True, "previous_response_id": "resp_1"},
        {"has_store": True, "store": False, "previous_response_id": "resp_1"},
        {"has_store": True, "input": [{"type": "item_reference", "id": "msg_1"}]},
        {"has_store": True, "store": False, "input": [{"type": "item_reference", "id": "msg_1"}]},
        {"previous_response_id": "resp_1"},
        {"background": True},
    ],
    ids=str,
)
def test_responses_that_continue_others_are_left(changes: JsonObject) -> None:
    assert begin("openai", "openai", "responses", **changes) is None


@pytest.mark.parametrize(
    "body",
    [b"", b"{]", b"[]", b'{"error": {"message": "no"}}', b'{"choices": []}', b'{"choices": NaN}', b"\xef\xbb\xbf{}"],
)
def test_replies_that_are_no_plain_answer_are_left(body: bytes) -> None:
    single = make_chat(stream=False)
    assert single is not None
    assert single.take_reply(JSON, body) is None


def test_a_reply_whose_digits_are_lost_is_left() -> None:
    single = make_chat(stream=False)
    assert single is not None
    reply = load_sample("openai", "chat")["reply"]
    assert single.take_reply(JSON, json.dumps(reply | {"x": 2**64}).encode()) is None
    assert single.take_reply(JSON, json.dumps(reply | {"x": 2**64 - 1}).encode()) is not None


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (201, JSON),
        (404, JSON),
        (200, {}),
        (200, {"content-type": "text/event-stream"}),
        (200, JSON | {"content-encoding": "gzip"}),
        (200, JSON | {"content-length": "101"}),
    ],
)
def test_heads_of_other_replies_are_left(status: int, headers: dict[str, str]) -> None:
    assert has_plain_head(200, JSON | {"content-length": "100"}, 100)
    assert not has_plain_head(status, headers, 100)
