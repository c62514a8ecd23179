"""A store in one SQLite file, which several processes of one host may share.

It has three threads with a connection each: one for writing, one for reading, so that readers never wait for a lock,
and one that moves the write-ahead log into the file, so that saving never waits for the disk. Responses that wait to be
saved share a transaction. `put` returns after it is committed to the log. With `synchronous = NORMAL` that means:

- a process that is killed at any moment loses no acknowledged response, because the kernel has the log;
- if the machine loses power, the responses of the last moments may be missing, but the file is intact.

Deleted responses are overwritten in the file. The file does not shrink; free room is used again.

A job that writes waits for the lock of another process for at most `lock_timeout` from the moment in which it was
given, however many of them wait. After one has failed, `check` tries to write, and does not wait.

A task deletes expired and excess responses at the start and then every `sweep_interval` seconds, in batches with pauses
between them; each `put` makes its own room as well. Open the store after forking, not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.adapters.responses.stored import find_response_id
from dragoman.proxy.telemetry.usage_rows import KeyDay, UsageRow

from .checkpointer import Checkpointer
from .guarded_clock import ClockState, GuardedClock, measure_time
from .interface import StoredResponse, StoreError, StoreLimits
from .records import Packed, collect_responses, encode, unnamed_item_ids, unpack, walk_chain
from .sqlite_file import connect_reader, connect_writer, transaction
from .sqlite_rows import ResponseRow, Room, drop_oldest, save_responses
from .usage import drop_usage, insert_usage, select_key_days, select_usage
from .worker import Worker

__all__ = ["SqliteStore"]

_BATCH_PAUSE = 0.01  # seconds between two batches

_DELETE = "DELETE FROM response WHERE owner = ? AND id = ? AND stored_at > ?"
_SELECT = "SELECT raw_size, body FROM response WHERE owner = ? AND id = ? AND stored_at > ?"
_HOLDER = "SELECT response FROM item WHERE owner = ? AND id = ?"

_T = TypeVar("_T")


class SqliteStore:
    """A ProxyStore in a file. Create it with `open`."""

    def __init__(
        self,
        path: Path,
        limits: StoreLimits,
        clock: GuardedClock,
        lock_timeout: float,
        report: Callable[[StoreError], None],
    ) -> None:
        self._path = path.absolute()
        self._limits = limits
        self._clock = clock
        self._lock_timeout = lock_timeout
        self._busy_timeout = -1  # milliseconds; the writing thread's own
        self.is_failing = False
        self._room = Room(self._limits.max_size)  # the writing thread's own
        self._writer = Worker(self._path, "store-writer", self._save_rows)
        self._reader: Worker[None] = Worker(self._path, "store-reader")
        self._checkpointer = Checkpointer(self._path, report)
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        path: Path,
        limits: StoreLimits | None = None,
        *,
        report: Callable[[StoreError], None],
        clock: Callable[[], float] = time.time,
        measure: Callable[[], float] = measure_time,
        lock_timeout: float = 5.0,
        sweep_interval: float = 60.0,
    ) -> SqliteStore:
        """Open the store in the file at `path`; the file and its folder are created if they do not exist. Raises
        StoreError.

        `report` gets the errors of the sweeping task, and jumps of the clock. `lock_timeout` is how many seconds to
        wait for the lock of another process. `clock` returns seconds since 1970, `measure` seconds that pass.
        """
        guarded = GuardedClock(lambda text: report(StoreError("clock_changed", text)), clock, measure)
        store = cls(path, limits or StoreLimits(), guarded, lock_timeout, report)
        try:
            await store._writer.start(partial(connect_writer, store._path, lock_timeout))
            await store._reader.start(partial(connect_reader, store._path, lock_timeout))
            await store._checkpointer.start()
            if (state := await store._reader.run(_read_clock)) is not None:
                guarded.resume(state)
        except BaseException:
            await store.close()
            raise
        store._sweeping = asyncio.create_task(store._sweep_forever(sweep_interval, report))
        return store

    async def put(self, owner: str, record: StoredResponse) -> None:
        raw = encode(record, self._limits.max_response)
        earliest, latest = self._clock.bounds()
        cutoff, until = earliest - self._limits.retention, time.monotonic() + self._lock_timeout
        row = ResponseRow(owner, record.id, raw, unnamed_item_ids(record), latest, cutoff, until)
        await self._watch(self._writer.save(row))

    async def check(self) -> None:
        if self.is_failing:
            await self._write(partial(_save_clock, state=self._clock.get_state()), lock_timeout=0.0)

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        cutoff = self._cutoff()

        def read(connection: sqlite3.Connection) -> StoredResponse | None:
            packed = _read(connection, owner, cutoff, response_id)
            return unpack(packed) if packed else None

        return await self._reader.run(read)

    async def delete(self, owner: str, response_id: str) -> bool:
        cutoff = self._cutoff()

        def drop(connection: sqlite3.Connection) -> bool:
            try:
                return connection.execute(_DELETE, (owner, response_id, cutoff)).rowcount > 0
            except UnicodeEncodeError:  # a lone surrogate, which no id has
                return False

        return await self._write(drop)

    async def load_chain(self, owner: str, response_id: str, most: int) -> list[StoredResponse] | None:
        cutoff, most_bytes = self._cutoff(), self._limits.max_chain
        return await self._reader.run(
            lambda connection: walk_chain(partial(_read, connection, owner, cutoff), response_id, most, most_bytes)
        )

    async def find_by_items(self, owner: str, item_ids: Sequence[str], most: int) -> list[StoredResponse]:
        cutoff, most_bytes = self._cutoff(), self._limits.max_chain

        def read(connection: sqlite3.Connection) -> list[StoredResponse]:
            found = (_find_holder(connection, owner, item) for item in item_ids)
            response_ids = (each for each in found if each is not None)
            return collect_responses(partial(_read, connection, owner, cutoff), response_ids, most, most_bytes)

        return await self._reader.run(read)

    async def add_usage(self, rows: Sequence[UsageRow], forget_before: str) -> None:
        def add(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                insert_usage(connection, rows)
                drop_usage(connection, forget_before)

        await self._run_writer(add, self._lock_timeout)  # whether responses can be stored is another question

    async def load_usage(self, since: str) -> list[UsageRow]:
        return await self._reader.run(partial(select_usage, since=since))

    async def load_key_days(self, since: str) -> list[KeyDay]:
        return await self._reader.run(partial(select_key_days, since=since))

    async def close(self) -> None:
        try:
            if self._sweeping is not None:
                self._sweeping.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._sweeping
        finally:
            await self._reader.close()
            await self._checkpointer.close()
            await self._writer.close()  # the last connection to close removes the log

    async def sweep(self) -> int:
        """Delete expired and excess responses, and return how many. Raises StoreError."""
        await self._write(partial(_save_clock, state=self._clock.get_state()))
        dropped = 0
        while batch := await self._write(partial(_sweep, cutoff=self._cutoff(), max_size=self._limits.max_size)):
            dropped += batch
            await asyncio.sleep(_BATCH_PAUSE)
        return dropped

    async def _write(self, job: Callable[[sqlite3.Connection], _T], lock_timeout: float | None = None) -> _T:
        return await self._watch(self._run_writer(job, self._lock_timeout if lock_timeout is None else lock_timeout))

    async def _watch(self, writing: Awaitable[_T]) -> _T:
        """Wait for something that writes, and note whether it failed."""
        try:
            result = await writing
        except StoreError:
            self.is_failing = True
            raise
        self.is_failing = False
        self._checkpointer.note_change()
        return result

    async def _run_writer(self, job: Callable[[sqlite3.Connection], _T], lock_timeout: float) -> _T:
        until = time.monotonic() + lock_timeout

        def run(connection: sqlite3.Connection) -> _T:
            self._limit_wait(connection, until)
            return job(connection)

        return await self._writer.run(run)

    def _save_rows(self, connection: sqlite3.Connection, rows: Sequence[ResponseRow]) -> None:
        self._limit_wait(connection, rows[0].until)
        save_responses(connection, rows, self._room)

    def _limit_wait(self, connection: sqlite3.Connection, until: float) -> None:
        """Let the writing connection wait for a lock until this time, or a fiftieth longer."""
        wait = max(0, round(1000 * (until - time.monotonic())))
        if not wait <= self._busy_timeout <= 1.02 * wait:
            connection.execute(f"PRAGMA busy_timeout = {wait}")
            self._busy_timeout = wait

    async def _sweep_forever(self, pause: float, report: Callable[[StoreError], None]) -> None:
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                report(error)
            await asyncio.sleep(pause)

    def _cutoff(self) -> float:
        return self._clock.bounds()[0] - self._limits.retention


def _read(connection: sqlite3.Connection, owner: str, cutoff: float, response_id: str) -> Packed | None:
    try:
        row = connection.execute(_SELECT, (owner, response_id, cutoff)).fetchone()
    except UnicodeEncodeError:  # a lone surrogate, which no id has
        return None
    return Packed(*row) if row else None


def _find_holder(connection: sqlite3.Connection, owner: str, item_id: str) -> str | None:
    try:
        row = connection.execute(_HOLDER, (owner, item_id)).fetchone()
    except UnicodeEncodeError:  # a lone surrogate, which no id has
        return None
    return row[0] if row else find_response_id(item_id)


def _read_clock(connection: sqlite3.Connection) -> ClockState | None:
    row = connection.execute("SELECT known_at, doubted_at FROM clock").fetchone()
    return ClockState(*row) if row else None


def _save_clock(connection: sqlite3.Connection, state: ClockState) -> None:
    with transaction(connection):
        connection.execute("DELETE FROM clock")
        connection.execute("INSERT INTO clock (known_at, doubted_at) VALUES (?, ?)", (state.known_at, state.doubted_at))


def _sweep(connection: sqlite3.Connection, cutoff: float, max_size: int) -> int:
    with transaction(connection):
        return drop_oldest(connection, cutoff, max_size)
