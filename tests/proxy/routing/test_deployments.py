"""Azure clients may name a deployment instead of a model."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

VERSION = {"api-version": "2024-05-01-preview"}


@pytest_asyncio.fixture
async def two() -> AsyncIterator[tuple[str, FakeProvider]]:
    async with FakeProvider("azure") as fake:
        targets = [{"provider": "p", "model": name, "deployment": name} for name in ("blue", "green")]
        models = {"colours": {"targets": targets}, "other": {"targets": [{"provider": "p", "model": "other"}]}}
        provider = {"dialect": "azure", "base_url": fake.base_url}
        running = await start(
            Config.from_values(
                {"server": {"port": 0, "drain": {"delay": 0.001}}, "providers": {"p": provider}, "models": models}
            )
        )
        yield running.url, fake
        await running.stop()


async def ask(url: str, headers: dict[str, str], **body: JsonValue) -> tuple[int, JsonValue]:
    body["messages"] = [{"role": "user", "content": "x"}]
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/chat/completions", params=VERSION, json=body, headers=headers) as response,
    ):
        return response.status, await response.json()


@pytest.mark.parametrize("body", [{}, {"model": "colours"}])
async def test_the_header_picks_the_target(two: tuple[str, FakeProvider], body: dict[str, str]) -> None:
    url, fake = two
    for _ in range(4):
        status, _ = await ask(url, {"azureml-model-deployment": "green"}, **body)
        assert status == 200
    assert {request.body["model"] for request in fake.requests} == {"green"}
    assert {request.headers["azureml-model-deployment"] for request in fake.requests} == {"green"}


@pytest.mark.parametrize("body", [{}, {"model": "other"}])
async def test_an_unknown_deployment_is_404(two: tuple[str, FakeProvider], body: dict[str, str]) -> None:
    url, fake = two
    status, found = await ask(url, {"azureml-model-deployment": "red"}, **body)
    assert (status, found["status"]) == (404, 404)
    assert "red" in found["message"]
    assert fake.requests == []


async def test_without_a_model_or_a_deployment_the_request_is_refused(two: tuple[str, FakeProvider]) -> None:
    status, found = await ask(two[0], {})
    assert status == 400
    assert found["param"] == "model"


async def test_the_only_model_needs_no_name() -> None:
    async with FakeProvider("azure") as fake:
        provider = {"dialect": "azure", "base_url": fake.base_url}
        models = {"only": {"targets": [{"provider": "p"}]}}
        running = await start(
            Config.from_values(
                {"server": {"port": 0, "drain": {"delay": 0.001}}, "providers": {"p": provider}, "models": models}
            )
        )
        status, _ = await ask(running.url, {})
        await running.stop()
        assert (status, fake.requests[0].body["model"]) == (200, "only")
