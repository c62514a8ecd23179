"""A thread with an SQLite connection of its own, which the event loop gives jobs to.

The thread takes everything that waits. Jobs run one after the other, in the order in which they arrived; rows that
arrived next to each other are saved together. What one turn of the event loop brings arrives at once. Nothing waits for
company beyond that: if one row is there, one is saved. So the more rows there are, the fewer transactions and wake-ups
each of them costs.

If rows cannot be saved together, each of them is saved alone, so only those fail that cannot be saved.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from .interface import StoreError
from .sqlite_errors import as_store_error

__all__ = ["SaveRows", "Worker"]

_T = TypeVar("_T")
_Row = TypeVar("_Row")

SaveRows: TypeAlias = Callable[[sqlite3.Connection, Sequence[_Row]], None]
"""Saves rows in one transaction, and alters nothing if it raises."""


class _Task(NamedTuple):
    """What to run, None if `row` is to be saved; and the future of its result."""

    future: asyncio.Future[Any]
    run: Callable[[], Any] | None
    row: Any = None


class _Result(NamedTuple):
    value: Any
    error: BaseException | None = None


class Worker(Generic[_Row]):
    """Call `start` first and `close` last."""

    def __init__(self, path: Path, name: str, save_rows: SaveRows[_Row] | None = None) -> None:
        self._path = path
        self._save_rows = save_rows
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._given: list[_Task] = []  # in this turn of the event loop
        self._tasks: SimpleQueue[list[_Task]] = SimpleQueue()  # an empty list is the last
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False

    async def start(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Start the thread, and open the connection in it. Raises StoreError."""

        def run() -> None:
            self._connection = connect()
            self._file = _identify(self._path)

        self._loop = asyncio.get_running_loop()
        self._thread.start()
        await self._submit(run)

    async def run(self, job: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run the job, and return its result. Raises StoreError, also for errors of SQLite."""
        result: _T = await self._submit(partial(self._use_connection, job))
        return result

    def save(self, row: _Row) -> Awaitable[None]:
        """Save the row, together with others that wait. Raises StoreError if it cannot be saved alone either."""
        return self._submit(None, row)

    async def close(self) -> None:
        """Finish the jobs that were given, then close the connection."""
        if self._closed:
            return
        closing = None if self._loop is None else self._submit(self._disconnect)
        self._closed = True
        if closing is not None:
            self._hand_over()
            self._tasks.put([])
            await closing

    def _submit(self, run: Callable[[], Any] | None, row: _Row | None = None) -> asyncio.Future[Any]:
        if self._closed:
            raise StoreError("closed", f"the store {self._path} is closed")
        assert self._loop is not None, "the worker has not been started"
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._given:
            self._loop.call_soon(self._hand_over)
        self._given.append(_Task(future, run, row))
        return future

    def _hand_over(self) -> None:
        """Give the thread all that this turn of the event loop has brought."""
        if self._given:
            self._tasks.put(self._given)
            self._given = []

    # What follows runs in the thread.

    def _work(self) -> None:
        while self._run_tasks(self._take_tasks()):
            pass

    def _run_tasks(self, tasks: list[_Task]) -> bool:
        """Run tasks in their order; nothing of them is kept. False if there are none, or if the loop is closed."""
        assert self._loop is not None
        for are_rows, neighbors in groupby(tasks, lambda task: task.run is None):
            wanted = [task for task in neighbors if not task.future.cancelled()]
            for done in self._save_together(wanted) if are_rows else map(self._run_task, wanted):
                try:
                    self._loop.call_soon_threadsafe(_resolve, done)
                except RuntimeError:  # the loop is closed: nobody waits for a result
                    return False
        return bool(tasks)

    def _take_tasks(self) -> list[_Task]:
        """Everything that waits, at least one task; nothing after the last one."""
        tasks: list[_Task] = []
        while not tasks or not self._tasks.empty():
            given = self._tasks.get()
            if not given:
                self._tasks.put(given)
                break
            tasks += given
        return tasks

    def _run_task(self, task: _Task) -> list[tuple[_Task, _Result]]:
        assert task.run is not None
        return [(task, self._attempt(task.run))]

    def _save_together(self, tasks: list[_Task]) -> Iterator[list[tuple[_Task, _Result]]]:
        """Save the rows of tasks; yields the results that are certain."""
        if not tasks:
            return
        rows, save_rows = [task.row for task in tasks], self._save_rows
        assert save_rows is not None
        result = self._attempt(partial(self._use_connection, lambda connection: save_rows(connection, rows)))
        if result.error is None or len(tasks) == 1:
            yield [(task, result) for task in tasks]
        else:
            for task in tasks:
                yield from self._save_together([task])

    def _attempt(self, run: Callable[[], Any]) -> _Result:
        try:
            return _Result(run())
        except sqlite3.Error as error:
            made = as_store_error(error, self._path)
            made.__cause__ = error
            return _Result(None, made)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            return _Result(None, error)

    def _use_connection(self, job: Callable[[sqlite3.Connection], _T]) -> _T:
        assert self._connection is not None, "the worker has not been started"
        if _identify(self._path) != self._file:  # SQLite would go on writing into the file that is gone
            text = f"the store {self._path} was deleted or replaced while it was in use: restart dragoman"
            raise StoreError("file_gone", text)
        return job(self._connection)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _resolve(done: Iterable[tuple[_Task, _Result]]) -> None:
    """Give the results to those that wait for them, in the event loop."""
    for (future, *_), (value, error) in done:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def _identify(path: Path) -> tuple[int, int] | None:
    """The device and the number of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
