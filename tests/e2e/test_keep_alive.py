"""A silent stream of Responses gets comments as keep-alive; no other stream does."""

from __future__ import annotations

import aiohttp
import pytest
from openai import AsyncOpenAI

from dragoman.contract.json_types import JsonObject

from .house import BuildHouse, House

PAUSE = "fake:pause(delay=0.4) hello"
CHAT = {"model": "openai", "messages": [{"role": "user", "content": PAUSE}], "stream": True}
ASKED = {"model": "openai", "input": PAUSE, "stream": True}


async def streamed(house: House, path: str, body: JsonObject) -> bytes:
    async with aiohttp.ClientSession() as session, session.post(house.proxy.url + path, json=body) as reply:
        assert reply.status == 200, await reply.text()
        return await reply.read()


@pytest.mark.parametrize("protocol", ["chat", "responses"])
async def test_a_comment_comes_where_an_event_does_not(build: BuildHouse, protocol: str) -> None:
    house = await build(server={"keep_alive": 0.1}, protocols=["chat", protocol])
    parts = (await streamed(house, "/v1/responses", ASKED)).split(b"\n\n")
    pings = [place for place, part in enumerate(parts) if part == b": ping"]
    assert pings
    assert 0 < pings[0] < pings[-1] + 3 < len(parts)
    assert parts[-2:] == [b"data: [DONE]", b""]
    assert all(part.startswith((b"event: ", b"data: ")) for part in parts[:-1] if part != b": ping")


@pytest.mark.parametrize(
    ("server", "path", "body"),
    [
        ({"keep_alive": None}, "/v1/responses", ASKED),
        ({}, "/v1/responses", ASKED),
        ({"keep_alive": 0.1}, "/serving-endpoints/responses", {**ASKED, "input": [{"role": "user", "content": PAUSE}]}),
        ({"keep_alive": 0.1}, "/v1/chat/completions", CHAT),
        ({"keep_alive": 0.1}, "/chat/completions?api-version=2024-05-01-preview", CHAT),
    ],
)
async def test_there_is_none_elsewhere(build: BuildHouse, server: JsonObject, path: str, body: JsonObject) -> None:
    house = await build(server=server)
    assert b": ping" not in await streamed(house, path, body)


async def test_openai_s_own_client_passes_over_it(build: BuildHouse) -> None:
    house = await build(server={"keep_alive": 0.05})
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        stream = await client.responses.create(**ASKED)
        found = [event.type async for event in stream]
    assert found[-1] == "response.completed"
    assert found.count("response.output_text.delta") > 5


async def test_a_failure_after_the_silence_is_still_the_last_word(build: BuildHouse) -> None:
    house = await build(server={"keep_alive": 0.05}, timeouts={"inter_token": 0.2})
    parts = (await streamed(house, "/v1/responses", {**ASKED, "input": "fake:stall hello"})).split(b"\n\n")
    assert b": ping" in parts
    assert b"event: response.failed" in parts[-3]
    assert parts[-2:] == [b"data: [DONE]", b""]
