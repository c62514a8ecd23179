"""Defects that gateways are known for do not reach the client here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import openai
import pytest
import pytest_asyncio
from aiohttp import web
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import DIALECTS

from .house import BuildHouse, House

NAMES = ("get_weather", "get_time")
EMPTY: JsonObject = {"type": "object", "properties": {}}
TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": name, "parameters": EMPTY}} for name in NAMES]
FLAT_TOOLS: list[JsonObject] = [
    {"type": "function", "name": name, "parameters": EMPTY, "strict": False} for name in NAMES
]
everywhere = pytest.mark.parametrize("dialect", DIALECTS)


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield client


def user(behaviour: str) -> list[JsonObject]:
    return [{"role": "user", "content": f"fake:{behaviour} go"}]


async def chunks(client: AsyncOpenAI, dialect: str, behaviour: str) -> list[ChatCompletionChunk]:
    stream = await client.chat.completions.create(model=dialect, messages=user(behaviour), tools=TOOLS, stream=True)
    return [chunk async for chunk in stream]


async def events(client: AsyncOpenAI, dialect: str, behaviour: str, **more: JsonValue) -> list[ResponseStreamEvent]:
    stream = await client.responses.create(model=dialect, input=user(behaviour), tools=FLAT_TOOLS, stream=True, **more)
    return [event async for event in stream]


def calls_of(found: list[ChatCompletionChunk]) -> dict[int, list[str]]:
    """Index -> id, name and arguments as a client adds them up."""
    calls: dict[int, list[str]] = {}
    for chunk in found:
        for piece in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
            call = calls.setdefault(piece.index, ["", "", ""])
            call[0] += piece.id or ""
            call[1] += piece.function.name or ""
            call[2] += piece.function.arguments or ""
    return calls


# Over providers that speak chat


@everywhere
async def test_streamed_calls_finish_with_tool_calls(client: AsyncOpenAI, dialect: str) -> None:
    found = await chunks(client, dialect, "finish-stop-with-tools")
    assert [c.choices[0].finish_reason for c in found if c.choices and c.choices[0].finish_reason] == ["tool_calls"]
    last = (await events(client, dialect, "finish-stop-with-tools"))[-1].response
    assert (last.status, [item.type for item in last.output]) == ("completed", ["function_call"])


@everywhere
@pytest.mark.parametrize("behaviour", ["index-zero", "parallel-tools", "index-from-one"])
async def test_parallel_calls_have_indexes_of_their_own(client: AsyncOpenAI, dialect: str, behaviour: str) -> None:
    calls = calls_of(await chunks(client, dialect, behaviour))
    assert [*calls] == [0, 1]
    assert len({call[0] for call in calls.values()}) == 2
    assert [(name, json.loads(arguments)) for _, name, arguments in calls.values()] == [(name, {}) for name in NAMES]
    found = await events(client, dialect, behaviour)
    assert [item.arguments for item in found[-1].response.output] == ["{}", "{}"]


@everywhere
async def test_a_call_has_its_id_and_name_once(client: AsyncOpenAI, dialect: str) -> None:
    found = await chunks(client, dialect, "repeated-ids")
    pieces = [piece for chunk in found for piece in (chunk.choices[0].delta.tool_calls or () if chunk.choices else ())]
    assert [bool(piece.id) for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert json.loads(calls_of(found)[0][2]) == {}


@everywhere
async def test_all_chunks_have_one_id(client: AsyncOpenAI, dialect: str) -> None:
    found = await chunks(client, dialect, "id-varies")
    assert len({chunk.id for chunk in found}) == 1
    told = await events(client, dialect, "id-varies")
    assert len({event.response.id for event in told if hasattr(event, "response")}) == 1


@everywhere
async def test_events_have_every_key(client: AsyncOpenAI, dialect: str) -> None:
    found = await events(client, dialect, "text")
    assert [event.sequence_number for event in found] == list(range(len(found)))
    for event in (found[0], found[-1]):
        assert event.response.text.format.type == "text"
        assert None not in (event.response.tools, event.response.tool_choice, event.response.metadata)
    assert [event.logprobs for event in found if event.type == "response.output_text.delta"].count(None) == 0
    usage = found[-1].response.usage
    assert usage.input_tokens_details.cached_tokens == usage.output_tokens_details.reasoning_tokens == 0


LIFE = {
    "response.output_text.delta": ("response.output_item.added", "response.content_part.added"),
    "response.refusal.delta": ("response.output_item.added", "response.content_part.added"),
    "response.reasoning_text.delta": ("response.output_item.added", "response.content_part.added"),
    "response.reasoning_summary_text.delta": ("response.output_item.added", "response.reasoning_summary_part.added"),
    "response.function_call_arguments.delta": ("response.output_item.added",),
}


def born(found: list[ResponseStreamEvent], event: ResponseStreamEvent) -> list[str]:
    """The types of the events that announced what this one adds to."""
    before = found[: event.sequence_number]
    own = [one for one in before if getattr(one, "output_index", None) == event.output_index]
    return [one.type for one in own if one.type.endswith(".added")]


@everywhere
@pytest.mark.parametrize("behaviour", ["text", "parallel-tools", "reasoning", "refusal"])
async def test_nothing_grows_unannounced_or_stays_open(client: AsyncOpenAI, dialect: str, behaviour: str) -> None:
    found = await events(client, dialect, behaviour)
    for event in found:
        if event.type in LIFE:
            assert [*LIFE[event.type]] == born(found, event), event
    types = [event.type for event in found]
    for kind in LIFE:
        grown = {(e.output_index, getattr(e, "content_index", 0)) for e in found if e.type == kind}
        assert types.count(kind.replace(".delta", ".done")) == len(grown)
    assert types.count("response.output_item.added") == types.count("response.output_item.done")
    if (dialect, behaviour) == ("databricks", "reasoning"):
        assert "response.reasoning_summary_part.added" in types


@everywhere
async def test_an_error_before_the_first_event_is_answered_by_the_fallback(build: BuildHouse, dialect: str) -> None:
    targets = {"targets": [{"provider": dialect, "model": "first"}], "fallbacks": ["spare"]}
    spare = {"targets": [{"provider": "openai" if dialect != "openai" else "mindie", "model": "fake-text"}]}
    house = await build(models={"main": targets, "spare": spare})
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        house.fakes[dialect].script("first-error(status=503)")
        found = await events(client, "main", "text")
        assert found[-1].type == "response.completed"
        house.fakes[dialect].script("error-event")
        with pytest.raises(openai.APIError, match="on purpose"):  # what began is not begun again
            await events(client, "main", "text")


@everywhere
async def test_instructions_arrive_and_a_filter_makes_it_incomplete(
    client: AsyncOpenAI, house: House, dialect: str
) -> None:
    reply = await client.responses.create(model=dialect, input=user("content-filter"), instructions="Be brief.")
    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "content_filter")  # type: ignore[union-attr]
    assert house.fakes[dialect].requests[-1].body["messages"][0] == {"role": "system", "content": "Be brief."}


@everywhere
async def test_calls_have_no_role(client: AsyncOpenAI, house: House, dialect: str) -> None:
    whole = await client.responses.with_raw_response.create(model=dialect, input=user("tools"), tools=FLAT_TOOLS)
    items = json.loads(whole.text)["output"]
    assert [item["type"] for item in items] == ["function_call"]
    assert "role" not in items[0]
    found = await events(client, dialect, "tools")
    assert all("role" not in event.item.to_dict() for event in found if event.type == "response.output_item.added")


@everywhere
async def test_a_format_arrives_and_dropped_fields_are_named(client: AsyncOpenAI, house: House, dialect: str) -> None:
    form: JsonObject = {"format": {"type": "json_schema", "name": "n", "schema": {**EMPTY, "required": []}}}
    extra = {"made_up": 1, "client_metadata": {"a": "b"}}
    answer = await client.responses.with_raw_response.create(
        model=dialect, input=user("json"), text=form, extra_body=extra
    )
    sent = house.fakes[dialect].requests[-1].body
    assert sent["response_format"]["json_schema"]["name"] == "n"
    told = answer.headers["x-dragoman-changes"]
    assert 'path="made_up"' in told and 'path="client_metadata"' in told
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model=dialect, input="x", prompt={"id": "p"})
    assert caught.value.param == "prompt"


# Over a provider that speaks only Responses

USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
TEXT = {"type": "output_text", "text": "Hello", "annotations": []}


def response(**more: JsonValue) -> JsonObject:
    return {"id": "resp_1", "object": "response", "created_at": 1.5, "model": "m", "output": [], **more}


def sse(*found: JsonObject) -> bytes:
    lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in found]
    return "".join(lines).encode()


CREATED = {"type": "response.created", "response": response(status="in_progress")}
COMPLETED = {"type": "response.completed", "response": response(status="completed", usage=USAGE)}
DELTA = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "delta": "Hello"}  # fmt: skip
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "content": [TEXT]}}
SEARCH = {"type": "tool_search_call", "id": "ts_1", "status": "completed", "arguments": {"query": "q"}}


class Provider:
    """Answers every request with the same bytes; the last body that came stays in `asked`."""

    answer: bytes | JsonObject = b""
    asked: Any = None
    url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked = json.loads(await request.read())
        if isinstance(self.answer, dict):
            return web.json_response(self.answer)
        return web.Response(body=self.answer, headers={"Content-Type": "text/event-stream"})


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    found = Provider()
    runner = web.ServerRunner(web.Server(found.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield found
    await runner.cleanup()


@pytest_asyncio.fixture
async def far(provider: Provider) -> AsyncIterator[AsyncOpenAI]:
    """A client of a proxy whose only provider speaks Responses."""
    async with AsyncExitStack() as stack:
        config = {
            "server": {"port": 0, "drain": {"delay": 0.001}},
            "providers": {"p": {"dialect": "openai", "base_url": provider.url, "protocols": ["responses"]}},
            "models": {"far": {"targets": [{"provider": "p"}]}},
        }
        running = await start(Config.from_values(config))
        stack.push_async_callback(running.stop)
        yield await stack.enter_async_context(AsyncOpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0))


async def heard(far: AsyncOpenAI) -> list[ChatCompletionChunk]:
    stream = await far.chat.completions.create(
        model="far", messages=user("text"), stream=True, stream_options={"include_usage": True}
    )
    return [chunk async for chunk in stream]


async def test_calls_of_a_response_finish_with_tool_calls(far: AsyncOpenAI, provider: Provider) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    provider.answer = sse(CREATED, {**DONE, "item": call}, COMPLETED)
    found = await heard(far)
    assert [c.choices[0].finish_reason for c in found if c.choices][-1] == "tool_calls"
    assert calls_of(found) == {0: ["c1", "f", "{}"]}


async def test_an_empty_output_at_the_end_is_rebuilt(far: AsyncOpenAI, provider: Provider) -> None:
    provider.answer = sse(CREATED, ADDED, DELTA, DONE, COMPLETED)
    async with far.responses.stream(model="far", input="x") as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    assert final.output_text == "Hello"
    assert "".join(c.choices[0].delta.content or "" for c in await heard(far) if c.choices) == "Hello"


async def test_a_text_without_a_done_event_is_completed(far: AsyncOpenAI, provider: Provider) -> None:
    provider.answer = sse(CREATED, ADDED, DELTA, COMPLETED)
    stream = await far.responses.create(model="far", input="x", stream=True)
    found = [event async for event in stream]
    assert found[-1].type == "response.completed"
    assert found[-1].response.output_text == "Hello"


async def test_loose_numbers_become_a_whole_chat_stream(far: AsyncOpenAI, provider: Provider) -> None:
    provider.answer = sse(CREATED, ADDED, DELTA, DONE, COMPLETED)
    found = await heard(far)
    assert {(type(chunk.created), chunk.created) for chunk in found} == {(int, 1)}
    assert found[-1].usage.total_tokens == 7 and found[-1].choices == []
    assert [c.choices[0].finish_reason for c in found if c.choices and c.choices[0].finish_reason] == ["stop"]


async def test_an_unknown_item_passes_through(far: AsyncOpenAI, provider: Provider) -> None:
    unknown = [
        {"type": f"response.output_item.{word}", "output_index": 0, "item": SEARCH} for word in ("added", "done")
    ]
    later = [{**event, "output_index": 1} for event in (ADDED, DELTA, DONE)]
    provider.answer = sse(CREATED, *unknown, *later, COMPLETED)
    stream = await far.responses.create(model="far", input="x", stream=True)
    found = [event async for event in stream]
    assert found[-1].type == "response.completed"
    assert [item.to_dict()["type"] for item in found[-1].response.output] == ["tool_search_call", "message"]
    assert found[-1].response.output[0].to_dict()["arguments"] == {"query": "q"}
    assert "".join(c.choices[0].delta.content or "" for c in await heard(far) if c.choices) == "Hello"


async def test_a_stop_string_cuts_the_text_of_a_provider_without_stop(far: AsyncOpenAI, provider: Provider) -> None:
    provider.answer = response(status="completed", output=[{**ITEM, "content": [TEXT]}], usage=USAGE)
    reply = await far.chat.completions.create(model="far", messages=user("text"), stop=TEXT["text"][2:])
    assert "stop" not in provider.asked
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == (TEXT["text"][:2], "stop")


async def test_a_long_schema_arrives_whole(far: AsyncOpenAI, provider: Provider) -> None:
    properties = {f"property_number_{number}": {"type": "string"} for number in range(40)}
    form: JsonObject = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {**EMPTY, "properties": properties}},
    }
    provider.answer = response(status="completed", output=[{**ITEM, "content": [TEXT]}], usage=USAGE)
    await far.chat.completions.create(model="far", messages=user("x"), response_format=form, metadata={"a": "b"})
    assert provider.asked["text"]["format"]["schema"]["properties"] == properties
    assert provider.asked["metadata"] == {"a": "b"}
