"""Emulations over dragoman-mini: the same model with and without the capabilities gives the same answer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

LACKS = ["n", "stop", "parallel_tool_calls", "response_format"]
QUESTIONS = ("What is dragoman?", "Which dialects does dragoman speak?", "What is the weather in Oslo and in Rome?")
STOPS = ("dragoman", "a p", ".", ", ", "zzz", "and")
CITY: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "description": "Gets it.", "parameters": CITY}}
    for name in ("get_weather", "get_time")
]
TOGETHER = 4


class Told(NamedTuple):
    """What one choice says. The calls have no ids."""

    text: str
    calls: tuple[tuple[str, str], ...]
    finish: str


@pytest_asyncio.fixture
async def sdk() -> AsyncIterator[AsyncOpenAI]:
    """Its models are `able` and `bare`."""
    bare = {"provider": "mini", "lacks": LACKS, "emulate": {"response_format": "tool"}}
    parts: JsonObject = {
        "server": {"port": 0, "drain": {"delay": 0.001, "timeout": 0.1}},
        "providers": {"mini": {"engine": "local", "device": "cpu", "threads": 1}},
        "models": {"able": {"targets": [{"provider": "mini"}]}, "bare": {"targets": [bare]}},
    }
    proxy = await start(Config.from_values(parts), log_stream=io.BytesIO())
    async with AsyncOpenAI(base_url=f"{proxy.url}/v1", api_key="any", max_retries=0) as client:
        yield client
    await proxy.stop()


def generate(random: Random) -> JsonObject:
    request: JsonObject = {
        "messages": [{"role": "user", "content": random.choice(QUESTIONS)}],
        "seed": random.randrange(1000),
        "temperature": random.choice([0, 0.7, 1.5]),
        "max_tokens": random.randrange(1, 50),
    }
    if random.random() < 0.4:  # without stop strings: the engine looks for them in the text of calls too
        request |= {"tools": TOOLS, "parallel_tool_calls": False, "max_tokens": 200}
    elif random.random() < 0.7:
        request["stop"] = random.sample(STOPS, random.randrange(1, 4))
    return request


async def ask(sdk: AsyncOpenAI, model: str, *, stream: bool, **request: Any) -> tuple[list[Told], int]:
    """What the choices say, and the tokens of all."""
    if not stream:
        reply = await sdk.chat.completions.create(model=model, **request)
        assert reply.usage is not None
        return [tell(choice.message, choice.finish_reason) for choice in reply.choices], reply.usage.total_tokens
    chunks: Any = await sdk.chat.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, **request
    )
    return await collect(chunks)


async def collect(chunks: Any) -> tuple[list[Told], int]:
    texts: dict[int, str] = {}
    calls: dict[tuple[int, int], tuple[str, str]] = {}
    finishes: dict[int, str] = {}
    tokens = 0
    async for chunk in chunks:
        tokens = chunk.usage.total_tokens if chunk.usage else tokens
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            for call in choice.delta.tool_calls or ():
                name, arguments = calls.get((choice.index, call.index), ("", ""))
                said = name + (call.function.name or ""), arguments + (call.function.arguments or "")
                calls[choice.index, call.index] = said
            if choice.finish_reason:
                finishes[choice.index] = choice.finish_reason
    return [
        Told(texts[i], tuple(call for at, call in sorted(calls.items()) if at[0] == i), finishes[i])
        for i in sorted(texts)
    ], tokens


def tell(message: Any, finish: str) -> Told:
    calls = tuple((call.function.name, call.function.arguments) for call in message.tool_calls or ())
    return Told(message.content or "", calls, finish)


async def compare(sdk: AsyncOpenAI, request: JsonObject, n: int, stream: bool) -> None:
    """Each of n choices is the answer to the same request with a seed of its own."""
    wanted, tokens = [], 0
    for i in range(n):
        (told,), used = await ask(sdk, "able", stream=False, **{**request, "seed": request["seed"] + i})
        wanted.append(told)
        tokens += used
    found, used = await ask(sdk, "bare", stream=stream, n=n, **request)
    assert found == wanted, request
    if "stop" not in request and "tools" not in request:
        assert used == tokens, request


async def compare_many(sdk: AsyncOpenAI, count: int, seed: int) -> None:
    random = Random(seed)
    for _ in range(0, count, TOGETHER):
        plans = [(generate(random), random.randrange(1, 4), random.random() < 0.5) for _ in range(TOGETHER)]
        await asyncio.gather(*(compare(sdk, *plan) for plan in plans))


async def test_generated_requests(sdk: AsyncOpenAI) -> None:
    await compare_many(sdk, 24, 1)


@pytest.mark.heavy
async def test_many_generated_requests(sdk: AsyncOpenAI) -> None:
    await compare_many(sdk, 500, 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_format_by_a_tool(sdk: AsyncOpenAI, stream: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    request: JsonObject = {"messages": [{"role": "user", "content": QUESTIONS[2]}], "response_format": form, "n": 2}
    found, _ = await ask(sdk, "bare", stream=stream, max_tokens=100, temperature=0, **request)
    for told in found:
        assert (told.calls, told.finish) == ((), "stop")
        assert isinstance(json.loads(told.text)["city"], str)
