"""Behavior of the store in a file: the file itself, its room, its errors."""

# ruff: noqa: ASYNC110, ASYNC240 - the files are small and nobody else waits

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dragoman.proxy.conversations.stores.interface import StoreError, StoreLimits
from dragoman.proxy.conversations.stores.sqlite import SqliteStore
from dragoman.proxy.conversations.stores.sqlite_file import FORMATS

from .conftest import ManualClock, RecordFactory, SqliteOpener


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "responses.db"


@contextmanager
def other_program(file: Path) -> Iterator[sqlite3.Connection]:
    """Another program's connection to the file."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def query(connection: sqlite3.Connection, sql: str) -> int | str:
    """The first column of the first row."""
    value: int | str = connection.execute(sql).fetchone()[0]
    return value


async def refused(open_sqlite: SqliteOpener, path: Path, lock_timeout: float = 5.0) -> StoreError:
    """The error of opening the path."""
    with pytest.raises(StoreError) as caught:
        await open_sqlite(path=path, lock_timeout=lock_timeout)
    assert str(path) in str(caught.value)
    return caught.value


# The file


async def test_a_closed_store_can_be_opened_again(open_sqlite: SqliteOpener, file: Path, record: RecordFactory) -> None:
    first = await open_sqlite()
    kept = record()
    await first.put("me", kept)
    await first.close()
    assert [path.name for path in file.parent.iterdir()] == [file.name], "the log was not cleared away"
    assert await (await open_sqlite()).get("me", kept.id) == kept


async def test_only_the_user_can_read_the_file(
    open_sqlite: SqliteOpener, tmp_path: Path, record: RecordFactory
) -> None:
    path = tmp_path / "some" / "where" / "responses.db"
    before = os.umask(0)
    try:
        store = await open_sqlite(path=path)
        await store.put("me", record())
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"responses.db": 0o600, "responses.db-wal": 0o600, "responses.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_put_is_committed_to_the_write_ahead_log(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite()
    with other_program(file) as other:
        assert query(other, "PRAGMA journal_mode") == "wal"
        await store.put("me", record())
        assert query(other, "SELECT count(*) FROM response") == 1


async def test_a_deleted_response_is_overwritten_in_the_file(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite()
    secret = os.urandom(3000).hex()
    kept = record(secret, id="resp_0123456789abcdef")
    await store.put("me", kept)
    await store.delete("me", kept.id)
    await store.close()
    assert kept.id.encode() not in file.read_bytes()


async def test_a_relative_path_names_a_file_in_the_working_folder(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    for name in ("responses.db", ":memory:"):
        await open_sqlite(path=Path(name))
        assert (file.parent / name).is_file()


# Room


async def test_sweeping_deletes_expired_responses(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, clock: ManualClock
) -> None:
    store = await open_sqlite(StoreLimits(retention=100))
    for _ in range(250):
        await store.put("me", record())
    clock.now += 100
    young = record()
    await store.put("me", young)
    assert await store.sweep() == 150  # a batch of 100 went with the put
    with other_program(file) as other:
        assert query(other, "SELECT count(*) FROM response") == 1
        assert query(other, "SELECT bytes FROM total") == query(other, "SELECT sum(length(body)) FROM response")
    assert await store.get("me", young.id) == young


async def test_sweeping_runs_at_the_start_and_periodically(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, clock: ManualClock
) -> None:
    limits = StoreLimits(retention=100)
    first = await open_sqlite(limits)
    await first.put("me", record())
    await first.close()
    clock.now += 100
    second = await open_sqlite(limits, sweep_interval=0.01)
    with other_program(file) as other:

        async def emptied() -> None:
            while query(other, "SELECT count(*) FROM response"):
                await asyncio.sleep(0.01)

        await asyncio.wait_for(emptied(), 60)
        await second.put("me", record())
        clock.now += 100
        await asyncio.wait_for(emptied(), 60)


async def test_sweeping_shrinks_a_store_to_a_smaller_size(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, clock: ManualClock
) -> None:
    first = await open_sqlite()
    kept = []
    for number in range(300):
        clock.now += 1
        kept.append(record(f"Number {number}"))
        await first.put("me", kept[-1])
    await first.close()
    second = await open_sqlite(StoreLimits(max_size=2000, max_response=2000))
    await second.sweep()
    with other_program(file) as other:
        assert 0 < int(query(other, "SELECT sum(length(body)) FROM response")) <= 2000
    assert await second.get("me", kept[-1].id) == kept[-1]


async def test_failed_sweeping_is_reported_and_tried_again(
    file: Path, record: RecordFactory, clock: ManualClock
) -> None:
    troubles: list[StoreError] = []
    store = await SqliteStore.open(
        file, StoreLimits(retention=100), report=troubles.append, clock=clock, lock_timeout=0.01, sweep_interval=0.01
    )
    try:
        await store.put("me", record())
        with other_program(file) as other:
            other.execute("BEGIN IMMEDIATE")
            clock.now += 100
            while not troubles:
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
            while query(other, "SELECT count(*) FROM response"):
                await asyncio.sleep(0.01)
    finally:
        await store.close()
    assert {error.reason for error in troubles} == {"locked"}


# Paths


async def test_a_folder_is_refused(open_sqlite: SqliteOpener, tmp_path: Path) -> None:
    error = await refused(open_sqlite, tmp_path)
    assert error.reason == "unusable_path"
    assert "is a folder" in str(error) and "responses.db" in str(error)


@pytest.mark.parametrize("name", ["file/responses.db", "file/deeper/responses.db"])
async def test_a_path_below_a_file_is_refused(open_sqlite: SqliteOpener, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    error = await refused(open_sqlite, tmp_path / name)
    assert error.reason == "unusable_path"
    assert "not a folder" in str(error) or "Not a directory" in str(error)


@pytest.mark.parametrize(("name", "words"), [("x" * 300, "too long"), ("a\0b", "embedded null")])
async def test_an_impossible_file_name_is_refused(
    open_sqlite: SqliteOpener, tmp_path: Path, name: str, words: str
) -> None:
    error = await refused(open_sqlite, tmp_path / name)
    assert error.reason == "unusable_path"
    assert words in str(error)


async def test_a_named_pipe_is_refused(open_sqlite: SqliteOpener, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(await refused(open_sqlite, tmp_path / "pipe"))


as_other_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@as_other_user
async def test_a_folder_without_write_permission_is_refused(open_sqlite: SqliteOpener, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        error = await refused(open_sqlite, tmp_path / "responses.db")
        assert error.reason == "unusable_path"
        assert "Permission denied" in str(error)
    finally:
        tmp_path.chmod(0o700)


@as_other_user
async def test_a_file_without_write_permission_is_refused(open_sqlite: SqliteOpener, file: Path) -> None:
    await (await open_sqlite()).close()
    file.chmod(0o400)
    error = await refused(open_sqlite, file)
    assert error.reason == "unusable_path"
    assert "no permission to write" in str(error)


async def test_permissions_are_checked_before_the_file_is_opened(
    open_sqlite: SqliteOpener, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root has every permission, so `os.access` is replaced."""
    await (await open_sqlite()).close()
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != file.parent)
    error = await refused(open_sqlite, file)
    assert f"no permission to write to {file.parent}" in str(error)


# Files of other programs


async def test_a_file_that_is_not_a_database_is_refused_and_unchanged(open_sqlite: SqliteOpener, file: Path) -> None:
    file.write_text("Dear diary, " * 100)
    error = await refused(open_sqlite, file)
    assert error.reason == "not_ours"
    assert "not an SQLite database" in str(error)
    assert file.read_text() == "Dear diary, " * 100


@pytest.mark.parametrize("mark", ["CREATE TABLE diary (text)", "PRAGMA user_version = 7", "PRAGMA application_id = 7"])
async def test_the_database_of_another_program_is_refused_and_unchanged(
    open_sqlite: SqliteOpener, file: Path, mark: str
) -> None:
    with other_program(file) as other:
        other.execute(mark)
    before = file.read_bytes()
    error = await refused(open_sqlite, file)
    assert error.reason == "not_ours"
    assert "another program" in str(error)
    assert file.read_bytes() == before


async def test_a_newer_format_is_refused(open_sqlite: SqliteOpener, file: Path) -> None:
    await (await open_sqlite()).close()
    with other_program(file) as other:
        other.execute(f"PRAGMA user_version = {len(FORMATS) + 1}")
    error = await refused(open_sqlite, file)
    assert error.reason == "newer_version"
    assert f"format {len(FORMATS) + 1}" in str(error)


async def test_an_older_format_is_migrated(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_sqlite()
    kept = record()
    await first.put("me", kept)
    await first.close()
    monkeypatch.setattr(
        "dragoman.proxy.conversations.stores.sqlite_file.FORMATS", (*FORMATS, ("CREATE TABLE extra (x)",))
    )
    assert await (await open_sqlite()).get("me", kept.id) == kept
    with other_program(file) as other:
        assert query(other, "PRAGMA user_version") == len(FORMATS) + 1
        assert query(other, "SELECT count(*) FROM extra") == 0


async def test_an_empty_file_becomes_a_store(open_sqlite: SqliteOpener, file: Path, record: RecordFactory) -> None:
    file.touch()
    await (await open_sqlite()).put("me", record())


# Errors at run time


async def test_writing_fails_and_reading_works_while_another_process_holds_the_lock(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite(lock_timeout=0.05)
    kept = record()
    await store.put("me", kept)
    await store.sweep()  # and so the one at the start is over
    with other_program(file) as other:
        other.execute("BEGIN IMMEDIATE")
        for use in (store.put("me", record()), store.delete("me", kept.id)):
            with pytest.raises(StoreError, match="lock") as caught:
                await use
            assert caught.value.reason == "locked"
        assert await store.get("me", kept.id) == kept, "who reads waits for no lock"
        assert await store.load_chain("me", kept.id, 1) == [kept]
        other.execute("ROLLBACK")
    await store.put("me", record())


async def test_opening_fails_while_another_process_holds_the_lock(open_sqlite: SqliteOpener, file: Path) -> None:
    with other_program(file) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert (await refused(open_sqlite, file, lock_timeout=0.05)).reason == "locked"


async def test_a_full_disk_fails_the_put_and_nothing_else(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store: SqliteStore = await open_sqlite()
    kept, large = record(), record(os.urandom(100_000).hex())
    await store.put("me", kept)
    pages = await store._writer.run(lambda connection: query(connection, "PRAGMA page_count"))
    await store._writer.run(lambda connection: query(connection, f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StoreError, match="no room left") as caught:
        await store.put("me", large)
    assert caught.value.reason == "disk_full"
    assert await store.get("me", large.id) is None
    assert await store.get("me", kept.id) == kept
    await store._writer.run(lambda connection: query(connection, "PRAGMA max_page_count = 1000000"))
    await store.put("me", large)
    assert await store.get("me", large.id) == large


async def test_a_damaged_file_is_reported_as_corrupt(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite()
    kept = [record(f"Number {number}" * 100) for number in range(100)]
    for each in kept:
        await store.put("me", each)
    await store.close()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    troubles: list[StoreError] = []
    with pytest.raises(StoreError) as caught:
        again = await open_sqlite(report=troubles.append)
        await again.get("me", kept[0].id)
    assert caught.value.reason == "corrupt"
    assert "damaged" in str(caught.value)


async def test_a_damaged_response_is_reported_as_corrupt(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite()
    kept = record()
    await store.put("me", kept)
    for body in (b"x", b"x\x9c\x03\x00\x00\x00\x00\x01"):  # no zlib; zlib of nothing
        with other_program(file) as other:
            other.execute("UPDATE response SET body = ?", (body,))
        with pytest.raises(StoreError, match="damaged") as caught:
            await store.get("me", kept.id)
        assert caught.value.reason == "corrupt"


async def test_a_cancelled_put_affects_no_other(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    kept = [record(str(number) * 1000) for number in range(20)]
    tasks = [asyncio.ensure_future(store.put("me", each)) for each in kept]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [await store.get("me", each.id) for each in kept[1::2]] == kept[1::2]


async def test_closing_finishes_the_puts_that_have_begun(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    kept = [record(str(number) * 1000) for number in range(20)]
    puts = [asyncio.ensure_future(store.put("me", each)) for each in kept]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*puts)
    again = await open_sqlite()
    assert [await again.get("me", each.id) for each in kept] == kept


async def test_all_that_wait_for_a_lock_wait_at_the_same_time(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    """The last of them has no time left when the first one has given up."""
    store = await open_sqlite(lock_timeout=0.1)
    await store.put("a", record())
    await store.sweep()  # and so the one at the start is over
    with other_program(file) as other:
        other.execute("BEGIN IMMEDIATE")
        puts = (store.put("a", record()) for _ in range(3))
        found = await asyncio.gather(*puts, return_exceptions=True)
        assert [getattr(one, "reason", None) for one in found] == ["locked"] * 3
        left = await store._writer.run(lambda connection: query(connection, "PRAGMA busy_timeout"))
        assert int(left) <= 5


async def test_after_a_failure_the_store_is_checked(
    open_sqlite: SqliteOpener, file: Path, record: RecordFactory
) -> None:
    store = await open_sqlite(lock_timeout=0.01)
    await store.put("a", record())
    await store.sweep()  # and so the one at the start is over
    with other_program(file) as other:
        other.execute("BEGIN IMMEDIATE")
        await store.check()  # nothing has failed yet
        with pytest.raises(StoreError):
            await store.put("a", record())
        with pytest.raises(StoreError) as caught:
            await store.check()
        assert caught.value.reason == "locked"
        other.execute("ROLLBACK")
    await store.check()
    await store.put("a", record())
