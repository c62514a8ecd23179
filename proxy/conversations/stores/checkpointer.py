"""Moves the write-ahead log of a store into its file, so that saving never waits for the disk.

SQLite would do it within the commit that makes the log long, and everybody would wait until the disk has it all. Here a
thread with a connection of its own does it, `PAUSE` seconds after the first change. Others write meanwhile, so the log
may never be in the file as a whole, and grows. If it is longer than `LONG_LOG`, the thread moves the rest, which is
short by then, with the file locked, and the log begins anew. `connect_writer` sets how long the log gets if this thread
does not succeed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .interface import StoreError
from .sqlite_file import connect_reader
from .worker import Worker

__all__ = ["LONG_LOG", "PAUSE", "Checkpointer"]

PAUSE = 0.5  # seconds
LONG_LOG = 2_000  # pages


class Checkpointer:
    """Call `start` first and `close` last. `report` gets its errors; one that repeats only once."""

    def __init__(self, path: Path, report: Callable[[StoreError], None]) -> None:
        self._worker: Worker[None] = Worker(path, "store-checkpointer")
        self._path = path
        self._report = report
        self._has_changes = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open a connection to the file, which exists. Raises StoreError."""
        await self._worker.start(partial(connect_reader, self._path, lock_timeout=0.0))
        self._task = asyncio.create_task(self._run())

    def note_change(self) -> None:
        """Something was written to the log."""
        self._has_changes.set()

    async def close(self) -> None:
        """Finish the checkpoint that has begun."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._worker.close()

    async def _run(self) -> None:
        reported = None
        while await self._has_changes.wait():
            await asyncio.sleep(PAUSE)
            self._has_changes.clear()
            try:
                await self._worker.run(checkpoint)
                reported = None
            except StoreError as error:
                if error.reason != reported:
                    self._report(error)
                reported = error.reason


def checkpoint(connection: sqlite3.Connection) -> None:
    """Move the log into the file as far as that hinders nobody; more if the log is long."""
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages > LONG_LOG:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
