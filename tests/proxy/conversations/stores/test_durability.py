"""Several processes with one file, and processes that are killed."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.proxy.conversations.stores.interface import ResponseStore

from .conftest import RecordFactory, SqliteOpener

SCRIPT = """
import asyncio, os, sys
from functools import partial
from pathlib import Path
from dragoman.proxy.conversations.stores.interface import StoredResponse, new_response_id
from dragoman.proxy.conversations.stores.sqlite import SqliteStore

async def put(store, count):
    for _ in range(count):
        record = StoredResponse(new_response_id(), None, 0.0, "m", [{"text": os.urandom(2000).hex()}], {"output": []})
        await store.put("me", record)
        print(record.id, flush=True)

async def main(path, count, savers):
    store = await SqliteStore.open(Path(path), report=partial(print, file=sys.stderr))
    print("open", flush=True)
    await asyncio.gather(*(put(store, int(count)) for _ in range(int(savers))))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def writer(file: Path, count: int, savers: int = 3) -> subprocess.Popen[str]:
    """A process that prints the ids of responses that it has saved, so many by each of its savers."""
    command = [sys.executable, "-c", SCRIPT, str(file), str(count), str(savers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> list[str]:
    """The ids that a process printed before it ended by itself."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    opened, *ids = output.splitlines()
    assert opened == "open"
    return ids


def killed(process: subprocess.Popen[str], after: float) -> list[str]:
    """The ids that a process printed before it was killed, so many seconds after it had opened the store."""
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    time.sleep(after)
    process.kill()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -9, "it had ended before it was killed"
    return [line.strip() for line in output.splitlines(keepends=True) if line.endswith("\n")]


def integrity(file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


async def missing(store: ResponseStore, ids: list[str]) -> list[str]:
    return [each for each in ids if await store.get("me", each) is None]


@pytest.mark.parametrize("savers", [1, 40])
async def test_a_killed_process_loses_no_acknowledged_response(
    open_sqlite: SqliteOpener, tmp_path: Path, savers: int
) -> None:
    file = tmp_path / "responses.db"
    acknowledged: list[str] = []
    for _ in range(6):
        process = writer(file, 1_000_000, savers)
        acknowledged += await asyncio.to_thread(killed, process, random.uniform(0, 0.25))
        store = await open_sqlite(clock=time.time)  # it finds the log that the killed process left behind
        assert await missing(store, acknowledged) == []
        await store.close()
        assert integrity(file) == "ok"
    assert len(acknowledged) > 20


async def test_a_killed_process_leaves_no_lock(
    open_sqlite: SqliteOpener, tmp_path: Path, record: RecordFactory
) -> None:
    file = tmp_path / "responses.db"
    store = await open_sqlite(clock=time.time)
    process = writer(file, 1_000_000)
    killing = asyncio.create_task(asyncio.to_thread(killed, process, 0.2))
    mine = []
    while not killing.done():
        mine.append(record())
        await store.put("me", mine[-1])
        await asyncio.sleep(0.002)
    after = record()
    await store.put("me", after)
    assert await missing(store, [*await killing, *(each.id for each in mine), after.id]) == []
    await store.close()
    assert integrity(file) == "ok"


async def test_processes_can_open_and_write_one_file_at_the_same_time(
    open_sqlite: SqliteOpener, tmp_path: Path
) -> None:
    """None of them finds the others in its way, not even while the file is made."""
    file = tmp_path / "responses.db"
    processes = [writer(file, 60) for _ in range(3)]
    ids = [each for process in processes for each in await asyncio.to_thread(ended, process)]
    assert len(set(ids)) == 3 * 3 * 60
    store = await open_sqlite(clock=time.time)
    assert await missing(store, ids) == []
    await store.close()
    assert integrity(file) == "ok"


async def test_stores_can_open_one_new_file_at_the_same_time(
    open_sqlite: SqliteOpener, tmp_path: Path, record: RecordFactory
) -> None:
    for number in range(5):
        path = tmp_path / f"{number}.db"
        stores = await asyncio.gather(*(open_sqlite(path=path) for _ in range(6)))
        kept = [record() for _ in stores]
        await asyncio.gather(*(store.put("me", each) for store, each in zip(stores, kept, strict=True)))
        assert [await stores[0].get("me", each.id) for each in kept] == kept
