"""The rows of responses: saving several in one transaction, and making room for them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from .records import Packed, pack
from .sqlite_file import INSERT_ITEM, transaction

__all__ = ["ResponseRow", "drop_oldest", "save_responses"]

_BATCH = 100  # responses
_BATCH_BYTES = 8 * 1024**2

_INSERT = "INSERT OR REPLACE INTO response (owner, id, stored_at, raw_size, body) VALUES (?, ?, ?, ?, ?)"
_ROWID = "SELECT rowid FROM response WHERE owner = ? AND id = ?"
_IS_ROOM_NEEDED = """SELECT (SELECT bytes FROM total) > ?
    OR EXISTS (SELECT 1 FROM response WHERE stored_at <= ?)"""
_EXPIRED = """SELECT rowid, length(body) FROM response WHERE rowid <> ? AND stored_at <= ?
    ORDER BY stored_at LIMIT ?"""
_OLDEST = "SELECT rowid, length(body) FROM response WHERE rowid <> ? ORDER BY rowid LIMIT ?"


class ResponseRow(NamedTuple):
    """A response to save. `raw` is its JSON text, `item_ids` are those of its output. `stored_at` and `cutoff`, until
    which responses have expired, are in seconds since 1970; `until` ends the wait for a lock, by `time.monotonic`."""

    owner: str
    id: str
    raw: bytes
    item_ids: set[str]
    stored_at: float
    cutoff: float
    until: float


def save_responses(connection: sqlite3.Connection, rows: Sequence[ResponseRow], max_size: int) -> None:
    """Save rows in one transaction, as if one had been saved after the other, and make room for each of them."""
    bodies = [pack(row.raw) for row in rows]
    with transaction(connection):
        for run in _split_runs(rows, bodies):
            connection.executemany(_INSERT, [(row.owner, row.id, row.stored_at, *body) for row, body in run])
            connection.executemany(INSERT_ITEM, [(row.owner, item, row.id) for row, _ in run for item in row.item_ids])
        last = rows[-1]
        (is_room_needed,) = connection.execute(_IS_ROOM_NEEDED, (max_size, last.cutoff)).fetchone()
        if is_room_needed:
            (kept,) = connection.execute(_ROWID, (last.owner, last.id)).fetchone()
            for _ in rows:
                drop_oldest(connection, last.cutoff, max_size, kept)


def _split_runs(
    rows: Sequence[ResponseRow], bodies: Sequence[Packed]
) -> Iterator[Collection[tuple[ResponseRow, Packed]]]:
    """Rows with their bodies, in runs that have each response once: one that is replaced loses its items first."""
    run: dict[tuple[str, str], tuple[ResponseRow, Packed]] = {}
    for row, body in zip(rows, bodies, strict=True):
        if (row.owner, row.id) in run:
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
