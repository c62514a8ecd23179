"""Files that earlier versions of dragoman wrote (fixtures/format-N.sql): nothing in them is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.proxy.conversations.stores.interface import StoredResponse
from dragoman.proxy.conversations.stores.sqlite_file import FORMATS
from dragoman.proxy.telemetry.usage_rows import UsageRow

from .conftest import ManualClock, RecordFactory, SqliteOpener

FIXTURES = Path(__file__).parent / "fixtures"
EARLIER = sorted(FIXTURES.glob("format-*.sql"))


def write_database(file: Path, script: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script.read_text())


def read_number(file: Path, sql: str) -> float:
    with closing(sqlite3.connect(file)) as connection:
        return float(connection.execute(sql).fetchone()[0])


def name(kind: str, number: int) -> str:
    return f"{kind}_{number:032x}"


def test_every_earlier_format_has_a_file() -> None:
    assert [path.stem for path in EARLIER] == [f"format-{number}" for number in range(1, len(FORMATS))]


@pytest.mark.parametrize("script", EARLIER, ids=lambda path: path.stem)
async def test_a_file_of_an_earlier_version_is_migrated(
    open_sqlite: SqliteOpener, record: RecordFactory, clock: ManualClock, tmp_path: Path, script: Path
) -> None:
    file = tmp_path / "responses.db"
    write_database(file, script)
    clock.now = 1_700_000_000.0 + 60
    store = await open_sqlite()
    assert read_number(file, "PRAGMA user_version") == len(FORMATS)

    last = await store.load_chain("me", name("resp", 2), 9)
    assert last is not None
    assert [get_text(each) for each in last] == ["Answer 1", "Answer 2"]
    assert [each.input[0]["content"] for each in last] == ["Question 1", "Question 2"]
    mine = await store.find_by_items("me", [name("msg", 2), name("msg", 3)], 9)
    assert [each.id for each in mine] == [name("resp", 2)]
    assert [each.id for each in await store.find_by_items("", [name("msg", 3)], 9)] == [name("resp", 3)]

    following = record("Go on", name("resp", 2))
    await store.put("me", following)
    assert len(await store.load_chain("me", following.id, 9) or []) == 3
    total = read_number(file, "SELECT bytes FROM total")
    assert total == read_number(file, "SELECT sum(length(body)) FROM response")
    await store.close()
    assert read_number(file, "SELECT count(*) FROM response") == 4


def get_text(response: StoredResponse) -> str:
    text: str = response.response["output"][0]["content"][0]["text"]
    return text


async def test_the_usage_of_an_earlier_version_counts_one_attempt_for_each_request(
    open_sqlite: SqliteOpener, tmp_path: Path
) -> None:
    write_database(tmp_path / "responses.db", FIXTURES / "format-4.sql")
    store = await open_sqlite()
    assert await store.load_usage("2027-01-01") == [UsageRow("2027-01-31", "ci", "m", "p/up", 2, 20, 10, 4, 0.5, 2)]


@pytest.mark.parametrize("script", EARLIER, ids=lambda path: path.stem)
async def test_a_migrated_file_knows_the_time_of_its_last_response(
    open_sqlite: SqliteOpener, clock: ManualClock, tmp_path: Path, script: Path
) -> None:
    """The clock is a year ahead, and so everything looks expired. It has to hold for an hour."""
    file = tmp_path / "responses.db"
    write_database(file, script)
    clock.now = 1_700_000_000.0 + 365 * 86_400
    store = await open_sqlite()
    await store.sweep()
    assert await store.get("me", name("resp", 1)) is not None
    clock.now += 3600
    await store.sweep()
    assert await store.get("me", name("resp", 1)) is None


async def test_a_migration_that_fails_changes_nothing(
    open_sqlite: SqliteOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "responses.db"
    write_database(file, EARLIER[0])
    broken = (*FORMATS[:2], ("CREATE TABLE extra (x)", "no SQL"))
    with monkeypatch.context() as patch, pytest.raises(Exception, match="syntax error"):
        patch.setattr("dragoman.proxy.conversations.stores.sqlite_file.FORMATS", broken)
        await open_sqlite()
    assert read_number(file, "PRAGMA user_version") == 1
    assert read_number(file, "SELECT count(*) FROM response") == 3
    assert read_number(file, "SELECT count(*) FROM sqlite_master WHERE name = 'extra'") == 0
    await open_sqlite()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from dragoman.proxy.conversations.stores import sqlite_file
from dragoman.proxy.conversations.stores.sqlite import SqliteStore

def kill(connection):
    os.kill(os.getpid(), signal.SIGKILL)

sqlite_file.FORMATS = (*sqlite_file.FORMATS, (kill,))
asyncio.run(SqliteStore.open(Path(sys.argv[1]), report=print))
"""


@pytest.mark.parametrize("script", EARLIER, ids=lambda path: path.stem)
async def test_a_process_that_is_killed_while_it_migrates_changes_nothing(
    open_sqlite: SqliteOpener, tmp_path: Path, script: Path
) -> None:
    file = tmp_path / "responses.db"
    write_database(file, script)
    earlier = read_number(file, "PRAGMA user_version")
    command = [sys.executable, "-c", KILLED, str(file)]
    done = await asyncio.to_thread(subprocess.run, command, timeout=60, check=False)
    assert done.returncode == -9
    assert read_number(file, "PRAGMA user_version") == earlier
    store = await open_sqlite()
    assert await store.get("me", name("resp", 2)) is not None
