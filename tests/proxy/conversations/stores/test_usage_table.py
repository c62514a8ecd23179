"""What keys have used, in every kind of store."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.proxy.conversations.stores.interface import StoreError
from dragoman.proxy.conversations.stores.sqlite_file import read_usage
from dragoman.proxy.conversations.stores.usage import ProxyStore
from dragoman.proxy.telemetry.usage_rows import KeyDay, UsageRow

from .conftest import SqliteOpener
from .test_sqlite import other_program


def make_row(day: str, key: str = "a", model: str = "m", cost: float = 0.5) -> UsageRow:
    return UsageRow(day, key, model, "p/up", 1, 10, 5, 2, cost, 3)


async def test_rows_of_the_same_names_are_added_up(store: ProxyStore) -> None:
    first = [make_row("2027-01-30"), make_row("2027-01-31"), make_row("2027-01-31", key="b", model="n")]
    await store.add_usage(first, "2026-01-01")
    await store.add_usage([make_row("2027-01-31")], "2026-01-01")
    assert await store.load_usage("2027-01-31") == [
        UsageRow("2027-01-31", "a", "m", "p/up", 2, 20, 10, 4, 1.0, 6),
        UsageRow("2027-01-31", "b", "n", "p/up", 1, 10, 5, 2, 0.5, 3),
    ]
    days = await store.load_key_days("2027-01-30")
    assert KeyDay("2027-01-30", "a", 15, 0.5) in days
    assert sum(one.tokens for one in days if (one.day, one.key) == ("2027-01-31", "a")) == 30


async def test_old_days_are_forgotten(store: ProxyStore) -> None:
    await store.add_usage([make_row("2025-12-31"), make_row("2026-01-01")], "2026-01-01")
    assert [row.day for row in await store.load_usage("2000-01-01")] == ["2026-01-01"]


async def test_a_failed_write_of_usage_refuses_no_response(open_sqlite: SqliteOpener, tmp_path: Path) -> None:
    store = await open_sqlite(lock_timeout=0.01)
    for _ in range(2):
        await store.sweep()  # so that the one in the background has ended too
    with other_program(tmp_path / "responses.db") as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await store.add_usage([make_row("2027-01-31")], "2026-01-01")
        await store.check()
        connection.execute("ROLLBACK")
    assert await store.load_usage("2027-01-01") == []


async def test_the_file_is_read_while_the_proxy_has_it(open_sqlite: SqliteOpener, tmp_path: Path) -> None:
    store = await open_sqlite()
    await store.add_usage([make_row("2027-01-31")], "2026-01-01")
    assert read_usage(tmp_path / "responses.db", "2027-01-01") == [make_row("2027-01-31")]
    with other_program(tmp_path / "responses.db") as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(StoreError, match="start the proxy once with this one"):
        read_usage(tmp_path / "responses.db", "2027-01-01")
