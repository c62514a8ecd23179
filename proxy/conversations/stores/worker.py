"""A thread with an SQLite connection of its own, which the event loop gives jobs to."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .interface import StoreError
from .sqlite_errors import as_store_error

__all__ = ["Worker"]

_T = TypeVar("_T")


class Worker:
    """Runs jobs one after the other, in the order in which they arrive. Call `start` first and `close` last."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False

    async def start(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Open the connection in the thread. Raises StoreError."""

        def run() -> None:
            self._connection = connect()
            self._file = _identify(self._path)

        await self._in_thread(run)

    async def run(self, job: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run the job, and return its result. Raises StoreError, also for errors of SQLite."""
        if self._closed:
            raise StoreError("closed", f"the store {self._path} is closed")

        def run() -> _T:
            assert self._connection is not None, "the worker has not been started"
            if _identify(self._path) != self._file:  # SQLite would go on writing into the file that is gone
                text = f"the store {self._path} was deleted or replaced while it was in use: restart dragoman"
                raise StoreError("file_gone", text)
            return job(self._connection)

        return await self._in_thread(run)

    async def close(self) -> None:
        """Finish the jobs that were given, then close the connection."""
        if self._closed:
            return
        self._closed = True
        await self._in_thread(self._disconnect)
        self._pool.shutdown(wait=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _in_thread(self, run: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, run)
        except sqlite3.Error as error:
            raise as_store_error(error, self._path) from error


def _identify(path: Path) -> tuple[int, int] | None:
    """The device and the number of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
