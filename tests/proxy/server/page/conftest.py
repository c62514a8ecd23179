"""A proxy with a page, in front of fakes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from dragoman.proxy.server.lifecycle import RunningProxy
from tests.proxy.page_rig import run_page_rig

from .page_client import PageClient


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as made:
        yield made


@pytest.fixture
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[RunningProxy]:
    """A proxy that keeps bodies; a parameter is another value of `server.inspect`."""
    async with run_page_rig(getattr(request, "param", "bodies")) as proxy:
        yield proxy


@pytest.fixture
def page(rig: RunningProxy, session: aiohttp.ClientSession) -> PageClient:
    return PageClient(session, rig.url)
