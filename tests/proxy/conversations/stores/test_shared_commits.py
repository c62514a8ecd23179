"""Responses that wait to be saved share a transaction, and nobody notices but by the time that it takes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from itertools import groupby
from os import urandom
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.adapters.call import JsonObject
from dragoman.adapters.responses.stored import new_item_id, new_response_id
from dragoman.proxy.conversations.stores.interface import (
    OverLimit,
    ResponseStore,
    StoredResponse,
    StoreError,
    StoreLimits,
)
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.conversations.stores.sqlite import SqliteStore

from .conftest import ManualClock, RecordFactory, SqliteOpener

Put: TypeAlias = tuple[str, list[str], str | None]
"""The id of a response, the ids of its items, and the response that it continues."""


@asynccontextmanager
async def held_up(store: SqliteStore) -> AsyncIterator[None]:
    """Keep the writing thread busy in the body: what is given to the store there waits until its end."""
    is_free = threading.Event()
    busy = asyncio.ensure_future(store._writer.run(lambda _: is_free.wait(60)))
    await asyncio.sleep(0)
    try:
        yield
        await asyncio.sleep(0)
    finally:
        is_free.set()
        assert await busy


async def save_together(store: SqliteStore, records: list[StoredResponse]) -> list[BaseException | None]:
    """Put records that wait at the same time; returns their errors."""
    async with held_up(store):
        puts = [asyncio.ensure_future(store.put("me", each)) for each in records]
    return await asyncio.gather(*puts, return_exceptions=True)


async def trace(store: SqliteStore) -> list[str]:
    """The list of the statements that the writing connection executes from now on."""
    seen: list[str] = []
    await store.sweep()  # and so the one at the start is over
    await store._writer.run(lambda connection: connection.set_trace_callback(seen.append))
    return seen


async def list_found(store: SqliteStore, records: Sequence[StoredResponse]) -> list[bool]:
    return [await store.get("me", each.id) == each for each in records]


async def test_responses_that_wait_share_one_transaction(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    records = [record(f"Number {number}") for number in range(50)]
    seen = await trace(store)
    assert await save_together(store, records) == [None] * 50
    assert seen.count("COMMIT") == 1
    assert all(await list_found(store, records))


async def test_responses_of_one_turn_of_the_event_loop_share_a_transaction(
    open_sqlite: SqliteOpener, record: RecordFactory
) -> None:
    """The thread has nothing to do, and could begin with the first of them."""
    store = await open_sqlite()
    seen = await trace(store)
    await asyncio.gather(*(store.put("me", record(f"Number {number}")) for number in range(20)))
    assert count_inserts(seen) == seen.count("COMMIT") == 1


async def test_a_response_does_not_wait_for_others(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    seen = await trace(store)
    for number in range(3):
        await store.put("me", record())
        assert count_inserts(seen) == number + 1


async def test_responses_that_wait_share_one_statement_if_there_is_room(
    open_sqlite: SqliteOpener, record: RecordFactory
) -> None:
    store = await open_sqlite()
    records = [record(f"Number {number}") for number in range(20)]
    await store.put("me", record())
    seen = await trace(store)
    assert await save_together(store, [*records, records[3]]) == [None] * 21
    assert count_inserts(seen) == 1 and not seen.count("COMMIT")
    assert all(await list_found(store, records))
    await check_total(store)
    assert await save_together(store, [*records, *(record() for _ in range(50))]) == [None] * 70
    await check_total(store)


async def test_rows_of_an_earlier_version_that_still_runs_are_counted(
    open_sqlite: SqliteOpener, record: RecordFactory
) -> None:
    """It goes on with its own statements after another process has migrated the file."""
    store = await open_sqlite()
    await store.put("me", record())
    insert = "INSERT INTO response (owner, id, stored_at, raw_size, body) VALUES ('me', 'resp_old', 1.0, 9, x'0102')"
    await store._writer.run(lambda connection: connection.execute(insert).close())
    await check_total(store)


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_an_item_whose_id_names_its_response_is_found(
    open_sqlite: SqliteOpener, record: RecordFactory, is_replaced: bool
) -> None:
    store = await open_sqlite()
    kept, own = record(), ""
    for foreign in ("msg_1", new_item_id(record().id, "msg", 0)) if is_replaced else ("msg_1",):
        own = new_item_id(kept.id, "rs", 300)
        kept.response["output"] = [{"type": "message", "id": foreign}, {"type": "reasoning", "id": own}]
        await store.put("me", kept)
        for item in (own, foreign):
            assert await store.find_by_items("me", [item], 9) == [kept]
            assert await store.find_by_items("you", [item], 9) == []
    items = "SELECT count(*) FROM item"
    assert await store._reader.run(lambda connection: connection.execute(items).fetchone()) == (1,)
    await store.delete("me", kept.id)
    assert await store.find_by_items("me", [own], 9) == []


async def test_ids_that_are_ordered_by_time_let_a_commit_write_fewer_pages(
    open_sqlite: SqliteOpener, record: RecordFactory, tmp_path: Path
) -> None:
    """The index of the ids is one page long at first, and grows: a random id is on any of its pages."""
    sizes = []
    for name, create_id in (("ordered", new_response_id), ("random", lambda: f"resp_{urandom(22).hex()}")):
        store = await open_sqlite(path=tmp_path / name)
        for _ in range(8):  # more than one commit, and no log that is moved into the file
            await save_together(store, [record(id=create_id()) for _ in range(200)])
        await store._writer.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        for _ in range(8):
            await save_together(store, [record(id=create_id()) for _ in range(4)])
        sizes.append((tmp_path / f"{name}-wal").stat().st_size)
    assert sizes[0] < 0.8 * sizes[1]


async def check_total(store: SqliteStore) -> None:
    sizes = "SELECT (SELECT bytes FROM total), sum(length(body)) FROM response"
    total, expected = await store._reader.run(lambda connection: connection.execute(sizes).fetchone())
    assert total == expected


def count_inserts(seen: list[str]) -> int:
    """How many statements insert responses. One whose triggers run is seen several times."""
    return sum(each.startswith("INSERT OR REPLACE INTO response") for each, _ in groupby(seen))


async def test_only_the_response_that_has_no_room_fails(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    """The transaction of all of them fails, so each is saved alone."""
    store = await open_sqlite()
    await store.put("me", record())
    await store._writer.run(limit_to_pages(6))
    large = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(60_000))
    records = [record("a"), record(large), record("b"), record(large), record("c")]
    errors = await save_together(store, records)
    assert [getattr(error, "reason", None) for error in errors] == [None, "disk_full", None, "disk_full", None]
    assert await list_found(store, records) == [True, False, True, False, True]


def limit_to_pages(more: int) -> Callable[[sqlite3.Connection], None]:
    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + more}")

    return limit


async def test_a_row_that_sqlite_refuses_fails_alone(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    await store._writer.run(
        lambda connection: connection.execute(
            """CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.response WHEN NEW.id = 'resp_bad'
            BEGIN SELECT RAISE(ABORT, 'bad'); END"""
        )
    )
    records = [record(id="resp_1"), record(id="resp_bad"), record(id="resp_2")]
    errors = await save_together(store, records)
    assert [type(error) for error in errors] == [type(None), StoreError, type(None)]
    assert await list_found(store, records) == [True, False, True]
    with pytest.raises(StoreError):
        await store.put("me", records[1])
    await store.put("me", record())


async def test_whoever_stops_waiting_is_left_out(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    records = [record(f"Number {number}") for number in range(9)]
    async with held_up(store):
        puts = [asyncio.ensure_future(store.put("me", each)) for each in records]
        await asyncio.sleep(0)
        for put in puts[::2]:
            put.cancel()
    await asyncio.gather(*puts, return_exceptions=True)
    assert await list_found(store, records) == [number % 2 == 1 for number in range(9)]


async def test_closing_saves_what_waits(open_sqlite: SqliteOpener, record: RecordFactory) -> None:
    store = await open_sqlite()
    records = [record(f"Number {number}") for number in range(9)]
    async with held_up(store):
        puts = [asyncio.ensure_future(store.put("me", each)) for each in records]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
    await asyncio.gather(*puts, closing)
    assert all(await list_found(await open_sqlite(), records))


async def test_together_they_make_room_as_one_after_the_other(
    open_sqlite: SqliteOpener, record: RecordFactory, clock: ManualClock, tmp_path: Path
) -> None:
    limits = StoreLimits(max_size=2000, max_response=2000, retention=100)
    one, other = await open_sqlite(limits), await open_sqlite(limits, path=tmp_path / "other.db")
    old = [record() for _ in range(3)]
    for each in old:
        await one.put("me", each)
        await other.put("me", each)
    clock.now += 100
    records = [record(f"Number {number}") for number in range(30)]
    for each in records:
        await one.put("me", each)
    await save_together(other, records)
    found = await list_found(other, records)
    assert found == await list_found(one, records)
    assert found[-1] and not found[0]
    for store in (one, other):
        assert await store._reader.run(count_responses) == sum(found), "those that had expired are gone"


def count_responses(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM response").fetchone()[0])


IDS = ("resp_a", "resp_b", "resp_c")
ITEMS = ("msg_1", "msg_2", "msg_3")
PUTS = st.tuples(st.sampled_from(IDS), st.lists(st.sampled_from(ITEMS), unique=True), st.none() | st.sampled_from(IDS))
ROUNDS = st.lists(st.tuples(st.booleans(), st.lists(PUTS | st.sampled_from(IDS), max_size=8)), max_size=4)


@settings(max_examples=25)
@example([(True, [("resp_a", ["msg_1"], None), ("resp_a", [], None)])])
@example([(True, [("resp_a", ["msg_1"], None), ("resp_b", ["msg_1"], None), ("resp_a", ["msg_1"], "resp_b")])])
@example([(True, [("resp_a", ["msg_1"], None), ("resp_b", ["msg_1"], None), ("resp_b", [], None)])])
@example([(True, [("resp_a", [], None), "resp_a", ("resp_a", ["msg_1"], None), "resp_b"])])
@given(ROUNDS)
def test_any_interleaving_equals_one_after_the_other(rounds: list[tuple[bool, list[Put | str]]]) -> None:
    """An id alone is deleted. The writes of a round are given at the same time; in some rounds they wait together."""
    with TemporaryDirectory() as folder:
        asyncio.run(compare_with_serial(Path(folder, "responses.db"), rounds))


async def compare_with_serial(path: Path, rounds: list[tuple[bool, list[Put | str]]]) -> None:
    store, serial = await SqliteStore.open(path, report=fail_with), MemoryStore()
    for number, (waits, steps) in enumerate(rounds):
        expected = [await write(serial, step, number) for step in steps]
        async with held_up(store) if waits else nullcontext():
            writes = [asyncio.ensure_future(write(store, step, number)) for step in steps]
        assert await asyncio.gather(*writes) == expected
        assert await read_all(store) == await read_all(serial)
    await store.close()


async def write(store: ResponseStore, step: Put | str, number: int) -> bool | None:
    if isinstance(step, str):
        return await store.delete("me", step)
    response_id, items, previous = step
    reply: JsonObject = {"number": number, "output": [{"type": "message", "id": item} for item in items]}
    return await store.put("me", StoredResponse(response_id, previous, 1.5, "m", [], reply))


async def read_all(store: ResponseStore) -> list[object]:
    """What a store has, as far as it can be asked for."""
    return [
        *[await store.get("me", each) for each in IDS],
        *[await store.find_by_items("me", [each], 9) for each in ITEMS],
        *[await recall(store, each) for each in IDS],
    ]


async def recall(store: ResponseStore, response_id: str) -> object:
    try:
        return await store.load_chain("me", response_id, 3)
    except OverLimit as error:
        return str(error)


def fail_with(error: StoreError) -> None:
    raise error
