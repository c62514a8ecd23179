"""A chat client over a provider that speaks only Responses: a second dragoman, over a chat-only fake."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

from .house import BuildHouse, House

TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_weather", "get_time")
]


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[AsyncOpenAI]:
    provider = {"dialect": "openai", "base_url": house.base_url, "protocols": ["responses"]}
    models = {"far": {"targets": [{"provider": "next", "model": "openai"}]}}
    running = await start(
        Config.from_values(
            {"server": {"port": 0, "drain": {"delay": 0.001}}, "providers": {"next": provider}, "models": models}
        )
    )
    async with AsyncOpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0) as client:
        yield client
    await running.stop()


def user(text: str) -> list[JsonObject]:
    return [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]


async def test_text_whole_and_streamed(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model="far", messages=user("hello"), max_tokens=100)
    assert whole.choices[0].finish_reason == "stop"
    async with client.chat.completions.stream(
        model="far", messages=user("hello"), stream_options={"include_usage": True}
    ) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.usage is not None


@pytest.mark.parametrize("streamed", [False, True])
async def test_parallel_tools(client: AsyncOpenAI, streamed: bool) -> None:
    messages = user("fake:parallel-tools go")
    if streamed:
        async with client.chat.completions.stream(model="far", messages=messages, tools=TOOLS) as stream:
            async for _ in stream:
                pass
            choice: Any = (await stream.get_final_completion()).choices[0]
    else:
        choice = (await client.chat.completions.create(model="far", messages=messages, tools=TOOLS)).choices[0]
    assert choice.finish_reason == "tool_calls"
    messages.append(choice.message.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in choice.message.tool_calls]
    answer = await client.chat.completions.create(model="far", messages=messages, tools=TOOLS)
    assert answer.choices[0].message.content


@pytest.mark.parametrize(("behaviour", "finish"), [("length", "length"), ("content-filter", "content_filter")])
async def test_incomplete_is_a_finish_reason(client: AsyncOpenAI, behaviour: str, finish: str) -> None:
    reply = await client.chat.completions.create(model="far", messages=user(f"fake:{behaviour} x"))
    assert reply.choices[0].finish_reason == finish


async def test_failures_stay_failures(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.RateLimitError):
        await client.chat.completions.create(model="far", messages=user("fake:rate-limit x"))
    stream = await client.chat.completions.create(model="far", messages=user("fake:cut x"), stream=True)
    with pytest.raises(openai.APIError):
        async for _ in stream:
            pass
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="far", messages=user("x"), logit_bias={"1": 1})
    assert caught.value.param == "logit_bias"


@pytest.mark.parametrize("replies", ["off", "repair"])
async def test_a_whole_response_that_has_not_ended_is_a_failure(build: BuildHouse, replies: str) -> None:
    house = await build(policy={"replies": replies}, protocols=["chat", "responses"])
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        for dialect in ("openai", "databricks"):
            with pytest.raises(openai.InternalServerError, match="still in_progress: it may be incomplete") as caught:
                await client.responses.create(model=dialect, input="fake:cut-clean x")
            assert (caught.value.status_code, caught.value.code) == (502, "upstream_truncated")
            assert (await client.responses.create(model=dialect, input="x")).status == "completed"
