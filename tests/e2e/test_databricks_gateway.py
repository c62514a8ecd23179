"""Databricks' AI Gateway and its Responses for all vendors through a real socket, served and called."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

USER: list[JsonObject] = [{"role": "user", "content": "hello"}]
MODELS = ("databricks-gpt-5", "system.ai.claude-sonnet-4-5")
PROTOCOLS = ("chat", "responses", "embeddings")


def configure(fake: FakeProvider) -> Config:
    """The models are those of a gateway, and below `direct/` those of the same workspace's endpoints."""
    workspace = {"dialect": "databricks", "base_url": fake.base_url, "api_key": "sk-up", "protocols": PROTOCOLS}
    models = {name: {"targets": [{"provider": "gateway"}]} for name in MODELS}
    models |= {f"direct/{name}": {"targets": [{"provider": "workspace", "model": name}]} for name in MODELS}
    server = {"port": 0, "drain": {"delay": 0.001}}
    providers = {"gateway": {**workspace, "address": "ai-gateway"}, "workspace": workspace}
    return Config.from_values({"server": server, "providers": providers, "models": models})


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with FakeProvider("databricks") as running:
        yield running


@pytest_asyncio.fixture
async def url(fake: FakeProvider) -> AsyncIterator[str]:
    running = await start(configure(fake))
    yield running.url
    await running.stop()


def client(url: str, path: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=url + path, api_key="any", max_retries=0)


@pytest.mark.parametrize("start", ["", "/databricks"])
@pytest.mark.parametrize("model", MODELS)
async def test_the_unified_apis_are_served_and_called(url: str, fake: FakeProvider, model: str, start: str) -> None:
    async with client(url, f"{start}/ai-gateway/mlflow/v1") as gateway:
        reply = await gateway.chat.completions.create(model=model, messages=USER)
        stream = await gateway.chat.completions.create(model=model, messages=USER, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        assert text == reply.choices[0].message.content
        assert (await gateway.embeddings.create(model=model, input=["a", "b"])).data[1].embedding
        assert (await gateway.responses.create(model=model, input="hello")).output_text == text
    *paths, last = [request.path for request in fake.requests]
    unified = "/ai-gateway/mlflow/v1"
    assert paths == [f"{unified}/chat/completions", f"{unified}/chat/completions", f"{unified}/embeddings"]
    assert last == (f"{unified}/responses" if "claude" in model else "/ai-gateway/openai/v1/responses")
    assert [request.body["model"] for request in fake.requests] == [model] * 4


@pytest.mark.parametrize("path", ["/ai-gateway/openai/v1", "/ai-gateway/mlflow/v1", "/serving-endpoints"])
async def test_responses_are_served_at_each_address(url: str, path: str) -> None:
    async with client(url, path) as gateway:
        async with gateway.responses.stream(model=MODELS[0], input="hello") as stream:
            events = [event async for event in stream]
        assert events[-1].type == "response.completed"


@pytest.mark.parametrize("model", MODELS)
async def test_open_responses_are_served_and_called(url: str, fake: FakeProvider, model: str) -> None:
    body = {"model": f"direct/{model}", "input": [{"role": "user", "content": "hello"}], "max_output_tokens": 256}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/serving-endpoints/open-responses", json=body) as response,
    ):
        reply = await response.json()
    assert (response.status, reply["object"], reply["status"]) == (200, "response", "completed")
    name = "open-responses" if "claude" in model else "responses"
    assert [request.path for request in fake.requests] == [f"/serving-endpoints/{name}"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/2.0/serving-endpoints/"),
        ("GET", "/v1/models/"),
        ("GET", "/live/"),
        ("POST", "/ai-gateway/mlflow/v1/chat/completions/"),
        ("POST", f"/serving-endpoints/{MODELS[0]}/invocations/"),
    ],
)
async def test_addresses_may_end_with_a_slash(url: str, method: str, path: str) -> None:
    body = {"model": MODELS[0], "messages": USER} if method == "POST" else None
    async with aiohttp.ClientSession() as session, session.request(method, url + path, json=body) as response:
        assert response.status == 200
        told = await response.json()
    if path.startswith("/api/"):
        assert {one["name"] for one in told["endpoints"]} >= set(MODELS)
