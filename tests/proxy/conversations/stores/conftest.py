"""Stores to try, each kind of which is given to the same tests, and records to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.proxy.conversations.stores.interface import ResponseStore, StoredResponse, StoreLimits, new_response_id
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.stores.sqlite import SqliteStore

Opener = Callable[..., Awaitable[ResponseStore]]


class Hands:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def record() -> Callable[..., StoredResponse]:
    def make(text: str = "Hi", previous: str | None = None, **fields: Any) -> StoredResponse:
        response_id = fields.pop("id", None) or new_response_id()
        reply = {"id": response_id, "object": "response", "output": [], "instructions": "Be brief."}
        items = [{"role": "user", "content": text}]
        return StoredResponse(response_id, previous, fields.pop("created_at", 1.5), "m", items, reply)

    return make


@pytest.fixture
async def open_sqlite(tmp_path: Path, clock: Hands) -> AsyncIterator[Callable[..., Awaitable[SqliteStore]]]:
    """Opens stores in one file, or in that at `path`. Trouble of their sweeping fails the test."""
    stores: list[SqliteStore] = []
    troubles: list[Exception] = []

    async def opener(limits: StoreLimits | None = None, **options: Any) -> SqliteStore:
        path = options.pop("path", tmp_path / "responses.db")
        store = await SqliteStore.open(path, limits, **{"clock": clock, "report": troubles.append, **options})
        stores.append(store)
        return store

    yield opener
    for store in stores:
        await store.close()
    assert troubles == []


@pytest.fixture(params=["memory", "sqlite"])
async def open_store(
    request: pytest.FixtureRequest, clock: Hands, open_sqlite: Callable[..., Awaitable[SqliteStore]]
) -> Opener:
    async def in_memory(limits: StoreLimits | None = None) -> ResponseStore:
        return MemoryStore(limits, clock=clock)

    return in_memory if request.param == "memory" else open_sqlite


@pytest.fixture
async def store(open_store: Opener) -> ResponseStore:
    return await open_store()
