"""Fixtures for the tests of the fakes: an HTTP session, and a chat client that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from .client import ChatClient


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def client(session: aiohttp.ClientSession) -> ChatClient:
    return ChatClient(session)
