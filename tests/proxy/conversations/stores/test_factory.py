"""The store that the configuration chooses, and the path of its file."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path

import orjson
import pytest

from dragoman.proxy.config.models import Store
from dragoman.proxy.conversations.stores.factory import open_store, store_path
from dragoman.proxy.conversations.stores.interface import OverLimit, StoreError
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.stores.records import encode, pack, unpack
from dragoman.proxy.conversations.stores.sqlite import SqliteStore

from .conftest import RecordFactory


def fail_on_error(error: StoreError) -> None:
    raise AssertionError(error)


async def test_each_kind_opens_its_store(tmp_path: Path) -> None:
    assert await open_store(Store(kind="none"), fail_on_error) is None
    memory = await open_store(Store(kind="memory"), fail_on_error)
    assert isinstance(memory, MemoryStore)
    await memory.close()
    file = tmp_path / "a" / "b.db"
    sqlite = await open_store(Store(path=str(file)), fail_on_error)
    assert isinstance(sqlite, SqliteStore)
    assert file.exists()
    await sqlite.close()


async def test_a_response_larger_than_the_store_is_refused(record: RecordFactory) -> None:
    store = await open_store(Store(kind="memory", max_size=1000), fail_on_error)
    assert store is not None
    with pytest.raises(OverLimit):
        await store.put("me", record("x" * 1000))


def test_the_default_file_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_path(Store(path="/a/b.db"), {"XDG_STATE_HOME": "/state"}) == Path("/a/b.db")
    assert store_path(Store(), {"XDG_STATE_HOME": "/state"}) == Path("/state/dragoman/responses.db")
    monkeypatch.setenv("HOME", "/home/me")
    for env in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert store_path(Store(), env) == Path("/home/me/.local/state/dragoman/responses.db")


def test_without_a_home_there_is_no_default_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match="neither XDG_STATE_HOME nor a home folder"):
        store_path(Store(), {})


def test_a_record_of_a_version_without_providers_can_be_read(record: RecordFactory) -> None:
    made = record()
    old = orjson.loads(encode(made, 10_000))
    del old["provider"], old["provider_id"]
    assert unpack(pack(orjson.dumps(old))) == made


@pytest.mark.parametrize("size", [0, 1_000, 16_000, 18_000, 100_000])
def test_small_texts_are_compressed_as_well_as_large_ones_and_in_less_memory(record: RecordFactory, size: int) -> None:
    made = record("".join(f"{number * 7919 % 1000} words, " for number in range(size // 11)))
    raw = encode(made, 10**6)
    tracemalloc.start()
    try:
        packed = pack(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unpack(packed) == made
    assert len(packed.body) <= 1.02 * len(zlib.compress(raw, 1))
    assert peak < 150_000 + len(packed.body) or len(raw) > 16 * 1024
