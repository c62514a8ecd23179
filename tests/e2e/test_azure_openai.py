"""OpenAI's client for Azure through a real socket; and Azure OpenAI as a provider."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import aiohttp
import openai
import pytest
import pytest_asyncio
from aiohttp import web
from openai import AsyncAzureOpenAI, AsyncOpenAI

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import DIALECTS, called

from .house import BuildHouse, House

TRUST = ssl.create_default_context()
KEYS = [{"name": "k", "key": "the-key"}]
USER: list[JsonObject] = [{"role": "user", "content": "hello"}]
VERSION = "2025-04-01-preview"


def azure(url: str, **more: str) -> AsyncAzureOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=TRUST)
    key = {} if "azure_ad_token" in more else {"api_key": "the-key"}
    return AsyncAzureOpenAI(azure_endpoint=url, api_version=VERSION, max_retries=0, http_client=http, **key, **more)


@pytest_asyncio.fixture
async def locked(build: BuildHouse) -> House:
    return await build(keys=KEYS)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_chat(locked: House, dialect: str) -> None:
    async with azure(locked.proxy.url) as client:
        reply = await client.chat.completions.create(model=dialect, messages=USER)
        assert reply.choices[0].message.content
        stream = await client.chat.completions.create(model=dialect, messages=USER, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert text == reply.choices[0].message.content
    assert locked.fakes[dialect].requests[0].headers.get("api-key") in (None, "sk-upstream")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_responses(locked: House, dialect: str) -> None:
    async with azure(locked.proxy.url) as client:
        reply = await client.responses.create(model=dialect, input="hello")
        assert reply.output_text
        async with client.responses.stream(model=dialect, input="hello") as stream:
            events = [event async for event in stream]
        assert events[-1].type == "response.completed"
        kept = await client.responses.retrieve(reply.id)
        assert kept.output_text == reply.output_text
        await client.responses.delete(reply.id)


def only(fake: FakeProvider, protocol: str) -> Config:
    """One model, `m`, at this provider."""
    address = {"dialect": fake.dialect, "base_url": fake.base_url}
    provider = {**address, "api_key": "sk-upstream", "protocols": [protocol]}
    models = {"m": {"targets": [{"provider": "p"}]}}
    return Config.from_values(
        {"server": {"port": 0, "drain": {"delay": 0.001}}, "keys": KEYS, "providers": {"p": provider}, "models": models}
    )


@pytest.mark.parametrize("dialect", called("embeddings"))
async def test_embeddings(build: BuildHouse, dialect: str) -> None:
    running = await start(only((await build()).fakes[dialect], "embeddings"))
    async with azure(running.url) as client:
        found = await client.embeddings.create(model="m", input=["a", "b"])
    await running.stop()
    assert [one.index for one in found.data] == [0, 1]
    assert found.data[0].embedding


@pytest.mark.parametrize("dialect", ["openai", "databricks"])
async def test_completions(build: BuildHouse, dialect: str) -> None:
    running = await start(only((await build()).fakes[dialect], "completions"))
    async with azure(running.url) as client:
        whole = await client.completions.create(model="m", prompt="a")
        stream = await client.completions.create(model="m", prompt="a", stream=True)
        text = "".join([chunk.choices[0].text async for chunk in stream if chunk.choices])
    await running.stop()
    assert text == whole.choices[0].text
    assert text


async def test_a_deployment_of_the_client_is_the_model(locked: House) -> None:
    """The SDK then leaves the deployments' part to its base address, and responses out of it."""
    async with azure(locked.proxy.url, azure_deployment="mindie") as client:
        reply = await client.chat.completions.create(model="whatever", messages=USER)
        assert reply.choices[0].message.content
        assert (await client.responses.create(model="openai", input="hello")).output_text
    assert len(locked.fakes["mindie"].requests) == 1


async def test_a_token_of_entra_id(locked: House) -> None:
    async with azure(locked.proxy.url, azure_ad_token="the-key") as client:
        assert (await client.chat.completions.create(model="openai", messages=USER)).choices


async def test_models_are_listed(locked: House) -> None:
    async with azure(locked.proxy.url) as client:
        assert {model.id async for model in client.models.list()} == set(DIALECTS)
        assert (await client.models.retrieve("mindie")).id == "mindie"


async def test_errors_in_the_clients_words(locked: House) -> None:
    async with azure(locked.proxy.url) as client:
        with pytest.raises(openai.NotFoundError, match="'gone' does not exist"):
            await client.chat.completions.create(model="gone", messages=USER)
        with pytest.raises(openai.BadRequestError, match="temperature") as caught:
            await client.chat.completions.create(model="openai", messages=USER, temperature=9)
        assert caught.value.param == "temperature"
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(
                model="openai", messages=[{"role": "user", "content": "fake:rate-limit"}]
            )


@pytest.mark.parametrize("path", ["/openai/v1/chat/completions", "/openai/v1/chat/completions?api-version=v1"])
async def test_a_client_of_v1_that_has_only_the_header_api_key(locked: House, path: str) -> None:
    """As the AI SDK's azure() sends it, given this base address."""
    body = {"model": "azure", "messages": USER}
    async with (
        aiohttp.ClientSession() as session,
        session.post(locked.proxy.url + path, json=body, headers={"api-key": "the-key"}) as response,
    ):
        assert response.status == 200
        assert (await response.json())["choices"]


# As a provider


class Resource:
    """An Azure OpenAI resource: its addresses in front of a fake, with what Azure adds to replies."""

    def __init__(self, fake: FakeProvider) -> None:
        self.fake = fake
        self.shown: list[tuple[str, str | None, str | None]] = []
        self.url = ""

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.shown.append((request.path, request.headers.get("api-key"), request.headers.get("Authorization")))
        body = await request.json()
        if request.query.get("api-version") != VERSION:
            return web.json_response({"error": {"code": "404", "message": "Resource not found"}}, status=404)
        *_, place, name, protocol, _ = ["", "", *request.path.split("/")]
        if (place, name, protocol) == ("deployments", "gone", "chat"):
            said = "The API deployment for this resource does not exist."
            return web.json_response({"error": {"code": "DeploymentNotFound", "message": said}}, status=404)
        body["model"] = name
        headers = {"Authorization": "Bearer sk-upstream"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.fake.base_url}/chat/completions", json=body, headers=headers) as inner,
        ):
            if not body.get("stream"):
                reply = await inner.json()
                if inner.status == 200:
                    reply["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": {}}]
                    reply["choices"][0]["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}
                return web.json_response(reply, status=inner.status)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(
                b'data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}\n\n'
            )
            async for data in inner.content.iter_any():
                await response.write(data)
            return response


@pytest_asyncio.fixture
async def resource() -> AsyncIterator[Resource]:
    async with FakeProvider("openai", api_key="sk-upstream") as fake:
        made = Resource(fake)
        runner = web.ServerRunner(web.Server(made, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.url = site.name if not site.name.endswith(":0") else f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
        await runner.cleanup()


@pytest_asyncio.fixture
async def client(resource: Resource) -> AsyncIterator[AsyncOpenAI]:
    provider = {"dialect": "openai", "address": "azure-openai", "base_url": resource.url, "api_version": VERSION}
    targets = {"gpt": [{"provider": "p", "model": "my deployment"}], "gone": [{"provider": "p"}]}
    models = {name: {"targets": some} for name, some in targets.items()}
    config = {
        "server": {"port": 0, "drain": {"delay": 0.001}},
        "providers": {"p": {**provider, "api_key": "sk-azure"}},
        "models": models,
    }
    running = await start(Config.from_values(config))
    http = openai.DefaultAsyncHttpxClient(verify=TRUST)
    async with AsyncOpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0, http_client=http) as made:
        yield made
    await running.stop()


async def test_a_resource_is_called_at_its_deployments(resource: Resource, client: AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(model="gpt", messages=USER)
    assert reply.choices[0].message.content
    stream = await client.chat.completions.create(model="gpt", messages=USER, stream=True)
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == reply.choices[0].message.content
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].id
    assert set(resource.shown) == {("/openai/deployments/my deployment/chat/completions", "sk-azure", None)}


async def test_a_deployment_that_is_not_there(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="API deployment for this resource does not exist"):
        await client.chat.completions.create(model="gone", messages=USER)
