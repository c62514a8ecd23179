"""Upstreams made of raw bytes, a dialect that does as little as possible, and a proxy between the two."""

from __future__ import annotations

import asyncio
import io
import random as randomness
import ssl as tls
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from dragoman.adapters.dialect import Dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

from .minimal_dialect import make_dialect
from .running_proxy import Provider, Proxy, StartProxy
from .scripted_upstream import StartUpstream, Step, Upstream, Wire


@pytest.fixture
def dialects() -> dict[str, Dialect]:
    return {"openai": make_dialect()}


@pytest.fixture
def aborting_dialects() -> dict[str, Dialect]:
    return {"openai": make_dialect(aborts=True)}


@pytest.fixture
async def upstream() -> AsyncIterator[StartUpstream]:
    servers = []

    async def listen(*script: Step, ssl: tls.SSLContext | None = None) -> Upstream:
        fake = Upstream(list(script))
        server = await asyncio.start_server(fake, "127.0.0.1", 0, ssl=ssl)
        fake.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return fake

    yield listen
    for server in servers:
        server.close()
    await asyncio.sleep(0)


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
async def proxy(dialects: dict[str, Dialect]) -> AsyncIterator[StartProxy]:
    """Starts proxies. `providers` are upstreams, ports or provider settings; the model "m" has them all as targets."""
    started: list[Proxy] = []

    async def make(
        *providers: Provider,
        speak: Mapping[str, Dialect] | None = None,
        random: randomness.Random | None = None,
        **config: JsonValue,
    ) -> Proxy:
        server = {"port": 0, "drain": {"delay": 0.001, "timeout": 5}, **config.pop("server", {})}
        names = {f"p{number}": _provider(provider) for number, provider in enumerate(providers)}
        targets = [{"provider": name, "model": "up"} for name in names]
        models = config.pop("models", {"m": {"targets": targets}} if targets else {})
        whole = Config.from_values({"server": server, "providers": names, "models": models, **config})
        log = io.BytesIO()
        running = await start(whole, dialects=speak or dialects, log_stream=log, random=random)
        made = Proxy(running, log, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        started.append(made)
        return made

    yield make
    for made in started:
        await made.session.close()
        made.running.stop_now.set()
        await made.running.stop()


def _provider(given: Provider) -> JsonObject:
    if isinstance(given, dict):
        return {"dialect": "openai", **given}
    return {"dialect": "openai", "base_url": f"http://127.0.0.1:{getattr(given, 'port', given)}/v1"}
