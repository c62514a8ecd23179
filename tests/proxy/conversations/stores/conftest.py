"""Stores under test, of each kind, and records to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import pytest

from dragoman.adapters.call import JsonObject
from dragoman.proxy.conversations.stores.interface import (
    ResponseStore,
    StoredResponse,
    StoreError,
    StoreLimits,
    new_response_id,
)
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.stores.sqlite import SqliteStore


class ManualClock:
    """A clock that a test sets. `now` is in seconds since 1970."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class RecordFactory(Protocol):
    """Makes a record with one user message."""

    def __call__(
        self, text: str = "Hi", previous: str | None = None, *, id: str | None = None, created_at: float = 1.5
    ) -> StoredResponse: ...


class StoreOpener(Protocol):
    """Opens a store of the kind under test."""

    async def __call__(self, limits: StoreLimits | None = None) -> ResponseStore: ...


class SqliteOpener(Protocol):
    """Opens a store in the test's file, or in that at `path`. Errors of its sweeping go to `report`, or fail the
    test."""

    async def __call__(
        self,
        limits: StoreLimits | None = None,
        *,
        path: Path | None = None,
        report: Callable[[StoreError], None] | None = None,
        clock: Callable[[], float] | None = None,
        measure: Callable[[], float] | None = None,
        lock_timeout: float = 5.0,
        sweep_interval: float = 60.0,
    ) -> SqliteStore: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def record() -> RecordFactory:
    def make(
        text: str = "Hi", previous: str | None = None, *, id: str | None = None, created_at: float = 1.5
    ) -> StoredResponse:
        response_id = id or new_response_id()
        reply: JsonObject = {"id": response_id, "object": "response", "output": [], "instructions": "Be brief."}
        items = [{"role": "user", "content": text}]
        return StoredResponse(response_id, previous, created_at, "m", items, reply)

    return make


@pytest.fixture
async def open_sqlite(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteOpener]:
    stores: list[SqliteStore] = []
    errors: list[StoreError] = []
    manual_clock = clock

    async def open_store(
        limits: StoreLimits | None = None,
        *,
        path: Path | None = None,
        report: Callable[[StoreError], None] | None = None,
        clock: Callable[[], float] | None = None,
        measure: Callable[[], float] | None = None,
        lock_timeout: float = 5.0,
        sweep_interval: float = 60.0,
    ) -> SqliteStore:
        store = await SqliteStore.open(
            path or tmp_path / "responses.db",
            limits,
            report=report or errors.append,
            clock=clock or manual_clock,
            measure=measure or clock or manual_clock,
            lock_timeout=lock_timeout,
            sweep_interval=sweep_interval,
        )
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        await store.close()
    assert errors == []


@pytest.fixture(params=["memory", "sqlite"])
async def open_store(request: pytest.FixtureRequest, clock: ManualClock, open_sqlite: SqliteOpener) -> StoreOpener:
    async def open_memory(limits: StoreLimits | None = None) -> ResponseStore:
        return MemoryStore(limits, clock=clock)

    return open_memory if request.param == "memory" else open_sqlite


@pytest.fixture
async def store(open_store: StoreOpener) -> ResponseStore:
    return await open_store()
