"""The behaviours of the fakes: each runs in each of its dialects, streamed and whole."""

from __future__ import annotations

import json

import aiohttp
import pytest

from dragoman.contract.fakes import BEHAVIOURS, FakeProvider, list_behaviours
from dragoman.contract.fakes.answers import SENTENCE
from tests.dialects import DIALECTS, called

from .client import ChatClient
from .tools import BOOK_TOOL, BOOKING

SILENT = ("hang", "hang-after-headers", "stall")
BROKEN = ("cut", "cut-fin", "cut-before", "cut-body", "garbage", "huge-header", "two-lengths")
SHORT = {
    "huge-body": "huge-body(size=1)",
    "gzip-bomb": "gzip-bomb(size=2)",
    "huge-event": "huge-event(size=1)",
    "slow": "slow(delay=0.001)",
}


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_every_behaviour_runs_in_its_dialects(name: str, client: ChatClient) -> None:
    for dialect in BEHAVIOURS[name].dialects or DIALECTS:
        async with FakeProvider(dialect, behaviour=SHORT.get(name, name)) as fake:
            for stream in (False, True):
                reply = await client.send(fake, stream=stream, read_timeout=0.05 if name in SILENT else 20.0)
                assert (reply.error is not None) == (name in SILENT + BROKEN), (dialect, reply)
                if name.startswith("status-"):
                    assert reply.status == int(name.removeprefix("status-")), dialect
            assert len(fake.requests) == 2, dialect


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_fake_refuses_behaviours_of_other_dialects(dialect: str, client: ChatClient) -> None:
    async with FakeProvider(dialect) as fake:
        for name, found in BEHAVIOURS.items():
            if found.dialects and dialect not in found.dialects:
                reply = await client.send(fake, f"fake:{name}")
                assert reply.status == 400 and f"belongs to {', '.join(found.dialects)}" in reply.raw.decode()


def test_list_has_one_line_for_each_behaviour() -> None:
    lines = list_behaviours().splitlines()
    assert [line.split("(")[0].split()[0] for line in lines] == list(BEHAVIOURS)
    assert any("slow(delay=0.05, words=0)" in line for line in lines)


@pytest.mark.parametrize("dialect", called("chat"))
async def test_tools_behaviour_calls_a_tool_with_valid_arguments(dialect: str, client: ChatClient) -> None:
    whole, stream = await client.send_both("tools", dialect, tools=[BOOK_TOOL])
    choice = whole.body["choices"][0]
    [call] = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "book")
    assert json.loads(call["function"]["arguments"]) == json.loads(stream.join_arguments()[0]) == BOOKING
    assert stream.finishes == ["tool_calls"] and stream.text == ""


async def test_tools_behaviour_calls_the_tool_of_tool_choice(client: ChatClient) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    chosen = {"type": "function", "function": {"name": "other"}}
    whole, _ = await client.send_both("tools", tools=[BOOK_TOOL, other], tool_choice=chosen)
    assert whole.message["tool_calls"][0]["function"] == {"name": "other", "arguments": "{}"}


async def test_message_can_set_the_tool_and_its_arguments(client: ChatClient) -> None:
    message = {"role": "user", "content": 'fake:tools(name=look, arguments={"at": "it", "long": true}) please'}
    whole, stream = await client.send_both("text", messages=[message], tools=[BOOK_TOOL])
    [call] = whole.message["tool_calls"]
    assert call["function"]["name"] == "look"
    assert call["function"]["arguments"] == stream.join_arguments()[0] == '{"at": "it", "long": true}'
    talk = [message, {"role": "assistant", "tool_calls": [call]}]
    whole, _ = await client.send_both(
        "text", messages=[*talk, {"role": "tool", "tool_call_id": call["id"], "content": "x"}]
    )
    assert whole.message["content"] == "The tools said: x"


async def test_tools_behaviour_calls_get_weather_without_tools(client: ChatClient) -> None:
    whole, _ = await client.send_both("tools")
    assert whole.message["tool_calls"][0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize("dialect", called("chat"))
async def test_tools_behaviour_answers_tool_results_with_text(dialect: str, client: ChatClient) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    talk = [
        {"role": "user", "content": "fake:tools"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "booked"},
    ]
    whole, stream = await client.send_both("text", dialect, messages=talk, tools=[BOOK_TOOL])
    assert whole.message["content"] == stream.text == "The tools said: booked"


async def test_parallel_calls_alternate(client: ChatClient) -> None:
    whole, stream = await client.send_both("parallel-tools", tools=[BOOK_TOOL])
    assert len({call["id"] for call in whole.message["tool_calls"]}) == 2
    indexes = [call["index"] for call in stream.calls]
    assert indexes[:6] == [0, 1, 0, 1, 0, 1]
    assert [json.loads(text) for text in stream.join_arguments().values()] == [BOOKING, BOOKING]


@pytest.mark.parametrize(
    ("name", "finish"),
    [("length", "length"), ("content-filter", "content_filter"), ("unknown-finish", "tired"), ("empty-finish", "")],
)
async def test_behaviour_sets_the_finish_reason(name: str, finish: str, client: ChatClient) -> None:
    whole, stream = await client.send_both(name)
    assert [whole.body["choices"][0]["finish_reason"]] == stream.finishes == [finish]
    assert (stream.text == SENTENCE) == (name != "length") and stream.text


async def test_refusal_is_a_field_in_openai_and_text_in_other_dialects(client: ChatClient) -> None:
    whole, stream = await client.send_both("refusal")
    message = whole.message
    assert message["content"] is None and message["refusal"].startswith("I can’t")
    assert "".join(delta.get("refusal") or "" for delta in stream.deltas) == message["refusal"]
    whole, stream = await client.send_both("refusal", "mindie")
    assert whole.message["content"] == stream.text == message["refusal"]


async def test_json_matches_the_response_format(client: ChatClient) -> None:
    described = {"name": "room", "schema": BOOK_TOOL["function"]["parameters"]}
    response_format = {"type": "json_schema", "json_schema": described}
    whole, stream = await client.send_both("json", response_format=response_format)
    assert json.loads(whole.message["content"]) == json.loads(stream.text) == BOOKING
    whole, _ = await client.send_both("json", response_format={"type": "json_object"})
    assert json.loads(whole.message["content"]) == {"answer": SENTENCE}


async def test_arguments_set_the_text(client: ChatClient) -> None:
    _, stream = await client.send_both("text(words=40)")
    assert len(stream.text.split()) == 40 and len(stream.chunks) == 42
    whole, _ = await client.send_both("text(say=a, b = c,words=3)")
    assert whole.message["content"] == "a, b ="


async def test_mindie_sends_its_own_finish_reasons(client: ChatClient) -> None:
    for name, finish, text in [
        ("eos_token", "eos_token", SENTENCE),
        ("stop_sequence", "stop_sequence", ""),
        ("stop_sequence-partial", "stop_sequence", SENTENCE),
        ("invalid-flag", "invalid flag", SENTENCE),
    ]:
        whole, stream = await client.send_both(name, "mindie")
        assert [whole.body["choices"][0]["finish_reason"]] == stream.finishes == [finish]
        assert whole.message["content"] == stream.text == text
        assert ("err_msg" in whole.body, "err_msg" in stream.chunks[-1]) == (name == "stop_sequence",) * 2


async def test_fake_sends_the_other_kind_of_body(client: ChatClient) -> None:
    _, stream = await client.send_both("json-for-stream")
    assert stream.body["object"] == "chat.completion" and stream.headers["Content-Type"] == "application/json"
    whole, _ = await client.send_both("stream-for-json")
    assert whole.text == SENTENCE and whole.headers["Content-Type"] == "text/event-stream"


async def test_fake_sends_bodies_that_are_not_replies(client: ChatClient) -> None:
    html, _ = await client.send_both("html")
    assert html.status == 200 and html.raw.startswith(b"<!doctype html>") and "html" in html.headers["Content-Type"]
    text, _ = await client.send_both("not-json")
    assert (text.raw, text.headers["Content-Type"]) == (b"ok", "application/json")
    empty, _ = await client.send_both("empty")
    assert (empty.status, empty.raw) == (200, b"")


async def test_redirect_leads_to_a_canary(session: aiohttp.ClientSession, client: ChatClient) -> None:
    async with FakeProvider("openai") as canary, FakeProvider("openai", behaviour="redirect") as fake:
        reply = await client.send(fake)
        assert (reply.status, reply.headers["Location"]) == (307, f"{fake.origin}/_fake/canary")
        async with session.post(reply.headers["Location"], data=b"leaked") as response:
            assert response.status == 404 and fake.requests[-1].raw == b"leaked"
        fake.behaviour = f"redirect(to={canary.origin}/trap)"
        assert (await client.send(fake)).headers["Location"] == f"{canary.origin}/trap"


async def test_rate_limit_has_retry_after(client: ChatClient) -> None:
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    for behaviour, wanted in {"rate-limit": "2", f"rate-limit(retry_after={date})": date}.items():
        whole, _ = await client.send_both(behaviour)
        assert (whole.status, whole.headers["Retry-After"]) == (429, wanted)
        assert whole.body["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("dialect", "status", "word"),
    [
        ("openai", 404, "model_not_found"),
        ("databricks", 404, "RESOURCE_DOES_NOT_EXIST"),
        ("azure", 404, "Not Found"),
        ("mindie", 422, "Input Validation Error"),
    ],
)
async def test_unknown_model_gets_the_dialects_error(dialect: str, status: int, word: str, client: ChatClient) -> None:
    whole, _ = await client.send_both("model-not-found", dialect)
    assert whole.status == status and word in whole.raw.decode()
