"""A proxy over a fake provider, in this process."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start


@dataclass
class Pair:
    """A proxy whose model `m` is served by a fake provider."""

    proxy: RunningProxy
    fake: FakeProvider
    log: io.BytesIO

    async def ask(self, text: str, path: str = "/v1/chat/completions", **more: JsonValue) -> int:
        """Chat, and return the status once the whole answer is there."""
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        async with aiohttp.ClientSession(self.proxy.url) as session, session.post(path, json=body) as answer:
            await answer.read()
            return answer.status

    @property
    def tracebacks(self) -> list[bytes]:
        return [line for line in self.log.getvalue().splitlines() if b"Traceback" in line or b'"defect"' in line]


def configure(base_url: str, **more: JsonObject) -> Config:
    server = {"port": 0, "drain": {"delay": 0.001, "timeout": 5}, **more.pop("server", {})}
    provider = {"dialect": "openai", "base_url": base_url, "protocols": ["chat", "completions", "embeddings"]}
    models = {"m": {"targets": [{"provider": "p", "model": "up"}]}}
    whole = {"store": {"kind": "none"}, "models": models, **more, "server": server, "providers": {"p": provider}}
    return Config.from_values(whole)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    log = io.BytesIO()
    async with FakeProvider("openai") as fake:
        proxy = await start(configure(fake.base_url), log_stream=log)
        yield Pair(proxy, fake, log)
        await proxy.stop()
