"""The official OpenAI client speaking Responses, through a real socket, over providers that speak only chat."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from dragoman.adapters.validation import load_validator
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import DIALECTS

from .house import House

WEATHER: JsonObject = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
TIME: JsonObject = {
    "type": "function",
    "name": "get_time",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class Person(BaseModel):
    name: str
    age: int


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_text(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.responses.create(model=dialect, input="hello", instructions="be brief")
    assert (reply.status, reply.object) == ("completed", "response")
    assert reply.output_text
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_stream_adds_up_to_the_whole(client: AsyncOpenAI, dialect: str) -> None:
    whole = await client.responses.create(model=dialect, input="hello")
    async with client.responses.stream(model=dialect, input="hello") as stream:
        text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
        final = await stream.get_final_response()
    assert final.output_text == text == whole.output_text


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_loop_with_parallel_tools(client: AsyncOpenAI, dialect: str) -> None:
    conversation: list[JsonValue] = [{"role": "user", "content": "fake:parallel-tools what is the weather?"}]
    async with client.responses.stream(model=dialect, input=conversation, tools=[WEATHER, TIME]) as stream:
        async for _ in stream:
            pass
        first = await stream.get_final_response()
    calls = [item for item in first.output if item.type == "function_call"]
    assert len({call.call_id for call in calls}) == 2
    conversation += [item.model_dump() for item in calls]
    conversation += [
        {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps({"sky": "blue"})}
        for call in reversed(calls)
    ]
    answer = await client.responses.create(model=dialect, input=conversation, tools=[WEATHER, TIME])
    assert answer.output_text


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_structured_output_is_parsed(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.responses.parse(model=dialect, input="fake:json who?", text_format=Person)
    assert isinstance(reply.output_parsed, Person)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_follow_up_with_the_output_of_a_call(client: AsyncOpenAI, dialect: str, streamed: bool) -> None:
    conversation: list[JsonValue] = [{"role": "user", "content": "Please get_weather of Oslo"}]
    options: JsonObject = {"model": dialect, "tools": [WEATHER], "instructions": "Be brief."}
    answers = []
    for _ in range(2):
        if streamed:
            async with client.responses.stream(input=conversation, **options) as stream:
                async for _event in stream:
                    pass
                answers.append(await stream.get_final_response())
        else:
            answers.append(await client.responses.create(input=conversation, **options))
        conversation += [item.model_dump(exclude_none=True) for item in answers[-1].output]
        calls = [item for item in answers[-1].output if item.type == "function_call"]
        conversation += [{"type": "function_call_output", "call_id": one.call_id, "output": "Sunny"} for one in calls]
    assert [item.type for item in answers[0].output] == ["function_call"]
    assert answers[1].output_text == "The tools said: Sunny"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_structured_output_of_a_stream_is_parsed(client: AsyncOpenAI, dialect: str) -> None:
    async with client.responses.stream(model=dialect, input="Who?", text_format=Person) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    assert isinstance(final.output_parsed, Person)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_free_text_and_namespaced_tools_are_called_by_their_own_names(client: AsyncOpenAI, dialect: str) -> None:
    patch: JsonObject = {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": {"type": "text"}}
    space: JsonObject = {"type": "namespace", "name": "files", "description": "Files.", "tools": [WEATHER]}
    asked = "fake:parallel-tools go"
    whole = await client.responses.create(model=dialect, input=asked, tools=[patch, space])
    async with client.responses.stream(model=dialect, input=asked, tools=[patch, space]) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    for reply in (whole, final):
        free, call = reply.output
        assert (free.type, free.name, free.input) == ("custom_tool_call", "apply_patch", "東京")  # type: ignore[union-attr]
        assert (call.type, call.name, call.namespace) == ("function_call", "get_weather", "files")  # type: ignore[union-attr]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_reasoning_is_an_item_before_the_message(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.responses.create(model=dialect, input="fake:reasoning why?")
    assert [item.type for item in reply.output] == ["reasoning", "message"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_errors_keep_their_class(client: AsyncOpenAI, dialect: str) -> None:
    with pytest.raises(openai.RateLimitError):
        await client.responses.create(model=dialect, input="fake:rate-limit x")
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(model=dialect, input="x", previous_response_id="resp_unknown")
    assert caught.value.code == "previous_response_not_found"
    with pytest.raises(openai.BadRequestError) as orphan:
        await client.responses.create(
            model=dialect, input=[{"type": "function_call_output", "call_id": "c9", "output": "x"}]
        )
    assert orphan.value.param == "input[0].call_id"


async def events(house: House, dialect: str, behaviour: str) -> list[JsonValue]:
    body = {"model": dialect, "input": f"fake:{behaviour} go", "stream": True, "tools": [WEATHER, TIME]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{house.base_url}/responses", json=body) as response,
    ):
        assert response.status == 200, await response.text()
        raw = await response.text()
    blocks = raw.removesuffix("\n\n").split("\n\n")
    assert blocks.pop() == "data: [DONE]"
    found = []
    for block in blocks:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "behaviour",
    ["text", "tools", "parallel-tools", "reasoning", "length", "content-filter", "refusal", "json-for-stream"],
)
async def test_every_event_is_valid_and_numbered(house: House, dialect: str, behaviour: str) -> None:
    found = await events(house, dialect, behaviour)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for event in found:
        assert [v.message for v in load_validator("hub/responses.event").violations(event)] == []
        EVENT.validate_python(event)
    terminal = found[-1]
    incomplete = behaviour in ("length", "content-filter")
    assert terminal["type"] == ("response.incomplete" if incomplete else "response.completed")
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert terminal["response"]["output"] == done
    assert [v.message for v in load_validator("hub/responses.reply").violations(terminal["response"])] == []
    Response.model_validate(terminal["response"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("behaviour", ["cut", "cut-clean", "bare-text", "malformed-event", "error-event"])
async def test_a_broken_stream_ends_in_response_failed(house: House, dialect: str, behaviour: str) -> None:
    found = await events(house, dialect, behaviour)
    assert [event["type"] for event in found[-2:]] == ["error", "response.failed"]
    assert found[-2]["error"]["message"] == found[-2]["message"]
    assert found[-1]["response"]["status"] == "failed"
    assert found[-1]["response"]["error"]["message"]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))


@pytest.mark.parametrize("replies", ["off", "report"])
async def test_a_translation_stands_on_mended_replies_whatever_the_policy(replies: str) -> None:
    log = io.BytesIO()
    async with FakeProvider("mindie") as fake:
        provider = {"dialect": "mindie", "base_url": fake.base_url, "policy": {"replies": replies}}
        models = {"m": {"targets": [{"provider": "p"}]}}
        config = Config.from_values(
            {"server": {"port": 0, "drain": {"delay": 0.001}}, "providers": {"p": provider}, "models": models}
        )
        running = await start(config, log_stream=log)
        async with (
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0) as client,
            client.responses.stream(model="m", input="hello") as stream,
        ):
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        await running.stop()
    assert final.output_text
    line = json.loads(log.getvalue().splitlines()[0])
    assert line["tokens_out"] > 0
