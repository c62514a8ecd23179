"""The official OpenAI client through a real socket, over each provider's dialect."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from typing import Any, cast

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from pydantic import BaseModel

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS

from .house import House

TRUST = ssl.create_default_context()  # made once: it takes longer than most of these tests
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}


class Person(BaseModel):
    name: str
    age: int


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(verify=TRUST)
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0, http_client=http) as client:
        yield client


def user(text: str) -> list[JsonObject]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_chat(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.chat.completions.create(model=dialect, messages=user("hello"))
    choice = reply.choices[0]
    assert reply.object == "chat.completion"
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_stream_adds_up_to_the_whole_reply(client: AsyncOpenAI, dialect: str) -> None:
    whole = await client.chat.completions.create(model=dialect, messages=user("hello"))
    async with client.chat.completions.stream(
        model=dialect, messages=user("hello"), stream_options={"include_usage": True}
    ) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_completion()
    text = "".join(event.delta for event in events if event.type == "content.delta")
    message = final.choices[0].message
    assert message.role == "assistant"
    assert message.content == text == whole.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"
    assert final.usage is not None
    assert final.usage.completion_tokens > 0


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_usage_comes_only_where_it_was_asked_for(client: AsyncOpenAI, dialect: str) -> None:
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(model=dialect, messages=user("hello"), stream=True)
    ]
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(
            model=dialect, messages=user("hello"), stream=True, stream_options={"include_usage": True}
        )
    ]
    assert [bool(chunk.usage) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_with_parallel_tools(house: House, client: AsyncOpenAI, dialect: str, streamed: bool) -> None:
    messages = user("fake:parallel-tools what is the weather?")
    tools: list[JsonValue] = [WEATHER, TIME]
    if streamed:
        async with client.chat.completions.stream(model=dialect, messages=messages, tools=tools) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        choice: Any = final.choices[0]
    else:
        choice = (await client.chat.completions.create(model=dialect, messages=messages, tools=tools)).choices[0]
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls
    assert len(calls) == 2
    assert len({call.id for call in calls}) == 2
    assert all(isinstance(json.loads(call.function.arguments), dict) for call in calls)
    messages.append(choice.message.model_dump())
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in reversed(calls)]
    answer = await client.chat.completions.create(model=dialect, messages=messages, tools=tools)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content
    sent = house.fakes[dialect].requests[-1].body["messages"]
    results = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert sorted(results) == sorted(call.id for call in calls)
    if dialect == "databricks":
        assert results == [call.id for call in calls], "results follow the order of their calls"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strict", [False, True])
async def test_each_streamed_call_is_whole_when_the_helper_says_so(
    client: AsyncOpenAI, dialect: str, strict: bool
) -> None:
    tools = [{**tool, "function": {**tool["function"], "strict": strict}} for tool in (WEATHER, TIME)]
    async with client.chat.completions.stream(
        model=dialect, messages=user("fake:parallel-tools the weather?"), tools=cast(Any, tools)
    ) as stream:
        done = [event async for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = await stream.get_final_completion()
    calls = final.choices[0].message.tool_calls or ()
    assert [event.arguments for event in done] == [call.function.arguments for call in calls]
    assert all(isinstance(json.loads(event.arguments), dict) for event in done) and len(done) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_structured_output_is_parsed(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.chat.completions.parse(model=dialect, messages=user("fake:json who?"), response_format=Person)
    parsed = reply.choices[0].message.parsed
    assert isinstance(parsed, Person)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_reasoning_arrives_beside_the_content(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.chat.completions.create(model=dialect, messages=user("fake:reasoning why?"))
    message: Any = reply.choices[0].message
    assert isinstance(message.content, str)
    assert isinstance(message.reasoning_content, str)
    async with client.chat.completions.stream(model=dialect, messages=user("fake:reasoning why?")) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == message.content


ERRORS = [
    ("status-400", openai.BadRequestError, 400),
    ("status-404", openai.NotFoundError, 404),
    ("status-422", openai.UnprocessableEntityError, 422),
    ("rate-limit", openai.RateLimitError, 429),
    ("status-500", openai.InternalServerError, 500),
    ("status-503", openai.InternalServerError, 503),
    ("status-401", openai.InternalServerError, 502),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("behaviour", "error", "status"), ERRORS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_errors_keep_their_class(
    client: AsyncOpenAI, dialect: str, behaviour: str, error: type[openai.APIStatusError], status: int, streamed: bool
) -> None:
    if (dialect, behaviour) == ("mindie", "status-422"):
        error, status = openai.UnprocessableEntityError, 422
    with pytest.raises(error) as caught:
        await client.chat.completions.create(model=dialect, messages=user(f"fake:{behaviour} x"), stream=streamed)
    assert caught.value.status_code == status
    body: Any = caught.value.body
    assert body["message"]
    assert body.keys() >= {"message", "type", "param", "code"}


async def test_the_parameter_at_fault_is_named_as_the_client_wrote_it(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as e01:
        await client.chat.completions.create(model="azure", messages=user("fake:azure-422-b(param=response_format) x"))
    assert (e01.value.param, e01.value.code) == ("response_format", "parameter_not_supported")
    with pytest.raises(openai.BadRequestError) as ours:
        await client.chat.completions.create(model="openai", messages=user("x"), temperature=3)
    assert ours.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as moved:
        await client.chat.completions.create(
            model="mindie", messages=[*user("x"), {"role": "developer", "content": ""}]
        )
    assert moved.value.param == "messages[1].content"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("behaviour", ["cut", "cut-clean", "malformed-event", "error-event", "bare-text"])
async def test_a_broken_stream_raises(client: AsyncOpenAI, dialect: str, behaviour: str) -> None:
    stream = await client.chat.completions.create(model=dialect, messages=user(f"fake:{behaviour} x"), stream=True)
    seen = []
    with pytest.raises(openai.APIError):
        async for chunk in stream:
            seen.append(chunk)
    assert seen, "what came before the failure was delivered"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_several_choices(client: AsyncOpenAI, dialect: str) -> None:
    reply = await client.chat.completions.create(model=dialect, messages=user("x"), n=2)
    assert [choice.index for choice in reply.choices] == [0, 1]
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(model=dialect, messages=user("x"), n=2, stream=True)
    ]
    finished = [choice.index for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert sorted(finished) == [0, 1]


async def test_an_api_that_is_not_served(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="dragoman has no such API") as caught:
        await client.images.generate(model="openai", prompt="a bridge")
    assert "it serves /v1/chat/completions, " in caught.value.message
    assert caught.value.code == "unknown_url"
