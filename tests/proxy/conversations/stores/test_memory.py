"""What only the store in memory has to care for."""

from __future__ import annotations

import threading

import pytest

from dragoman.proxy.conversations.stores import memory
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.stores.records import Packed, pack
from tests.proxy.conversations.stores.conftest import RecordFactory


@pytest.mark.parametrize(("size", "in_loop"), [(10, True), (1_000_000, False)])
async def test_a_large_response_is_compressed_in_another_thread(
    record: RecordFactory, monkeypatch: pytest.MonkeyPatch, size: int, in_loop: bool
) -> None:
    threads = []

    def observe(raw: bytes) -> Packed:
        threads.append(threading.current_thread())
        return pack(raw)

    monkeypatch.setattr(memory, "pack", observe)
    store = MemoryStore()
    stored = record("x" * size)
    await store.put("owner", stored)
    assert [thread is threading.main_thread() for thread in threads] == [in_loop]
    assert await store.get("owner", stored.id) == stored
