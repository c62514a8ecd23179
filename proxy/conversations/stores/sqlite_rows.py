"""The rows of responses: saving several in one transaction, and making room for them."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from .records import Packed, pack
from .sqlite_file import INSERT_ITEM, transaction

__all__ = ["ResponseRow", "Room", "drop_oldest", "save_responses"]

_BATCH = 100  # responses
_BATCH_BYTES = 8 * 1024**2
_STATEMENT = 32  # responses in one statement
_SHARE = 16  # of the free room, one part is used before the next look at it: other processes use it too

_INSERT = "INSERT OR REPLACE INTO response (owner, id, stored_at, raw_size, body, batch_size) VALUES "
_VALUES = "(?, ?, ?, ?, ?, ?)"
_STATE = "SELECT (SELECT bytes FROM total), (SELECT min(stored_at) FROM response)"
_ROWID = "SELECT rowid FROM response WHERE owner = ? AND id = ?"
_EXPIRED = """SELECT rowid, length(body) FROM response WHERE rowid <> ? AND stored_at <= ?
    ORDER BY stored_at LIMIT ?"""
_OLDEST = "SELECT rowid, length(body) FROM response WHERE rowid <> ? ORDER BY rowid LIMIT ?"


class ResponseRow(NamedTuple):
    """A response to save. `raw` is its JSON text, `item_ids` are those of its output that do not name it. `stored_at`
    and `cutoff`, until which responses have expired, are in seconds since 1970; `until` ends the wait for a lock, by
    `time.monotonic`."""

    owner: str
    id: str
    raw: bytes
    item_ids: set[str]
    stored_at: float
    cutoff: float
    until: float


class Room:
    """The room for responses in a file of at most `max_size` bytes. Looking at it takes longer than saving a response,
    so the next look is due when much of the room is used, or when the oldest response expires."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._unseen = 0  # bytes that may be saved before the next look
        self._oldest = -math.inf

    def is_enough(self, size: int, cutoff: float) -> bool:
        """Whether there is room for `size` more bytes, and nothing that was stored until `cutoff`."""
        if size > self._unseen or cutoff >= self._oldest:
            return False
        self._unseen -= size
        return True

    def make(self, connection: sqlite3.Connection, rows: Sequence[ResponseRow]) -> None:
        """Make room after rows have been saved in a transaction, as if after each of them. The last of them stays."""
        self._unseen, last = 0, rows[-1]
        size, oldest = connection.execute(_STATE).fetchone()
        if size > self._max_size or oldest <= last.cutoff:
            (kept,) = connection.execute(_ROWID, (last.owner, last.id)).fetchone()
            for _ in rows:
                drop_oldest(connection, last.cutoff, self._max_size, kept)
            size, oldest = connection.execute(_STATE).fetchone()
        self._unseen, self._oldest = (self._max_size - size) // _SHARE, oldest


def save_responses(connection: sqlite3.Connection, rows: Sequence[ResponseRow], room: Room) -> None:
    """Save rows in one transaction, as if one had been saved after the other, and make room for each of them."""
    bodies = [pack(row.raw) for row in rows]
    is_enough = room.is_enough(sum(len(each.body) for each in bodies), rows[-1].cutoff)
    if is_enough and len(rows) <= _STATEMENT and not any(row.item_ids for row in rows):
        _insert(connection, rows, bodies)  # a statement is a transaction
        return
    with transaction(connection):
        for run in _split_runs(rows, bodies):
            _insert(connection, *zip(*run, strict=True))
            connection.executemany(INSERT_ITEM, [(row.owner, item, row.id) for row, _ in run for item in row.item_ids])
        if not is_enough:
            room.make(connection, rows)


def _insert(connection: sqlite3.Connection, rows: Sequence[ResponseRow], bodies: Sequence[Packed]) -> None:
    """Insert rows by one statement: between two, the thread would wait for the interpreter's lock. The last row has the
    size of all of them, so that the total changes once."""
    values: list[object] = []
    size = 0
    for row, body in zip(rows, bodies, strict=True):
        values += (row.owner, row.id, row.stored_at, *body, 0)
        size += len(body.body)
    values[-1] = size
    connection.execute(_INSERT + ", ".join([_VALUES] * len(rows)), values)


def _split_runs(
    rows: Sequence[ResponseRow], bodies: Sequence[Packed]
) -> Iterator[Collection[tuple[ResponseRow, Packed]]]:
    """Rows with their bodies, in runs for one statement each. A run has a response once: one that is replaced loses its
    items first."""
    run: dict[tuple[str, str], tuple[ResponseRow, Packed]] = {}
    for row, body in zip(rows, bodies, strict=True):
        if (row.owner, row.id) in run or len(run) == _STATEMENT:
            yield run.values()
            run = {}
        run[row.owner, row.id] = row, body
    yield run.values()


def drop_oldest(connection: sqlite3.Connection, cutoff: float, max_size: int, kept: int = -1) -> int:
    """Delete at most one batch of the responses that were stored until `cutoff`, or of the first ones beyond the size,
    but never the row `kept`. Returns how many. Call it in a transaction."""
    if dropped := _drop(connection, connection.execute(_EXPIRED, (kept, cutoff, _BATCH)), _BATCH_BYTES):
        return dropped
    (total,) = connection.execute("SELECT bytes FROM total").fetchone()
    return _drop(connection, connection.execute(_OLDEST, (kept, _BATCH)), min(total - max_size, _BATCH_BYTES))


def _drop(connection: sqlite3.Connection, found: sqlite3.Cursor, size: int) -> int:
    """Delete the first of the rows found, until so many bytes are free. Returns how many."""
    rows, freed = [], 0
    with contextlib.closing(found):
        for row, body_size in found:
            if freed >= size:
                break
            rows.append((row,))
            freed += body_size
    connection.executemany("DELETE FROM response WHERE rowid = ?", rows)
    return len(rows)
