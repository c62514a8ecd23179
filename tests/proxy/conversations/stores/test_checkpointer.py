"""The write-ahead log goes into the file in the background, and does not grow without end."""

# ruff: noqa: ASYNC110, ASYNC240 - the files are small and nobody else waits

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.proxy.conversations.stores import checkpointer
from dragoman.proxy.conversations.stores.interface import StoreError

from .conftest import RecordFactory, SqliteOpener


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "responses.db"


def count_in_file(file: Path) -> int:
    """How many responses the file has without its log."""
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as connection:
        has_table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'response'").fetchone()
        return int(connection.execute("SELECT count(*) FROM response").fetchone()[0]) if has_table else 0


async def test_what_is_saved_gets_into_the_file(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer, "PAUSE", 0.01)
    store = await open_sqlite()
    for number in range(2):
        await store.put("me", record())

        async def arrived(expected: int = number + 1) -> None:
            while count_in_file(file) != expected:
                await asyncio.sleep(0.01)

        await asyncio.wait_for(arrived(), 60)


async def test_a_put_does_not_move_the_log(open_sqlite: SqliteOpener, file: Path, record: RecordFactory) -> None:
    """There are more pages than SQLite leaves in the log by itself."""
    store = await open_sqlite()
    await store._checkpointer.close()
    for number in range(300):
        await store.put("me", record(f"Number {number}"))
    assert file.with_name("responses.db-wal").stat().st_size > 1000 * 4096
    assert count_in_file(file) == 0


async def test_a_long_log_begins_anew(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer, "LONG_LOG", 20)
    store = await open_sqlite()
    sizes = []
    for _ in range(20):
        for _ in range(5):
            await store.put("me", record())
        await store._checkpointer._worker.run(checkpointer.checkpoint)
        sizes.append(file.with_name("responses.db-wal").stat().st_size)
    assert sizes[-1] == sizes[10]


async def test_an_error_that_repeats_is_reported_once(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer, "PAUSE", 0.0)
    errors: list[StoreError] = []
    store = await open_sqlite(report=errors.append)
    await store.put("me", record())
    await store.sweep()
    file.rename(file.with_name("elsewhere"))
    store._checkpointer.note_change()
    while not errors:
        await asyncio.sleep(0.01)
    for _ in range(5):
        store._checkpointer.note_change()
        await asyncio.sleep(0.01)
    assert [error.reason for error in errors] == ["file_gone"]
