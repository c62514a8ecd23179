"""A proxy over four fake providers, and clients of four dialects that ask it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest_asyncio

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.server.lifecycle import start
from tests.dialects import DIALECTS

from .client import COMPLETIONS, PATHS, USUAL_PROFILES, Client, MakeClient
from .house import BuildHouse, House, configure


@pytest_asyncio.fixture
async def build() -> AsyncIterator[BuildHouse]:
    """Starts houses; the arguments are configuration."""
    async with AsyncExitStack() as stack:

        async def make(fake_names: tuple[str, ...] = DIALECTS, **more: object) -> House:
            fakes = {
                name: await stack.enter_async_context(FakeProvider(name, api_key="sk-upstream")) for name in fake_names
            }
            log = io.BytesIO()
            running = await start(configure(fakes, **more), log_stream=log)
            stack.push_async_callback(running.stop)
            return House(running, fakes, log, more.get("server", {}).get("profiles", {}))

        yield make


@pytest_asyncio.fixture
async def house(build: BuildHouse) -> House:
    return await build()


@pytest_asyncio.fixture
async def client_of() -> AsyncIterator[MakeClient]:
    """The client of a dialect, for a house."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=128, force_close=True)) as session:

        def make(house: House, dialect: str, key: str | None = None, protocol: str = "chat") -> Client:
            profile = house.profiles.get(dialect) or USUAL_PROFILES.get(dialect, "actual")
            paths = (PATHS if protocol == "chat" else COMPLETIONS)[dialect]
            return Client(dialect, paths, profile, session, house, key, protocol)

        yield make
