from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest_asyncio

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.config.models import Config
from dragoman.proxy.serve import Running, start

DIALECTS = ("openai", "databricks", "azure", "mindie")


@dataclass
class House:
    """A running proxy, and the fake provider behind each of its models; a model is named like its dialect."""

    proxy: Running
    fakes: dict[str, FakeProvider]

    @property
    def base_url(self) -> str:
        return f"{self.proxy.url}/v1"


def configuration(fakes: dict[str, FakeProvider], **more: Any) -> Config:
    kind = {"databricks": {"kind": "provisioned-throughput"}}
    return Config.model_validate(
        {
            "server": {"port": 0},
            "providers": {
                name: {"dialect": name, "base_url": fake.base_url, "api_key": "sk-upstream", **kind.get(name, {})}
                for name, fake in fakes.items()
            },
            "models": {name: {"targets": [{"provider": name, "model": f"{name}-model"}]} for name in fakes},
            **more,
        }
    )


@pytest_asyncio.fixture
async def house() -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        fakes = {name: await stack.enter_async_context(FakeProvider(name, api_key="sk-upstream")) for name in DIALECTS}
        running = await start(configuration(fakes))
        stack.push_async_callback(running.stop)
        yield House(running, fakes)
