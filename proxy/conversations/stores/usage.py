"""The table of what was used: a row for each day, key, model and target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman.proxy.telemetry.usage_rows import KeyDay, UsageRow

from .interface import ResponseStore

if TYPE_CHECKING:
    import sqlite3  # only a store of the kind sqlite loads it

__all__ = [
    "COUNT_ATTEMPTS",
    "CREATE_USAGE",
    "ProxyStore",
    "UsageStore",
    "drop_usage",
    "insert_usage",
    "select_key_days",
    "select_usage",
]

CREATE_USAGE = """CREATE TABLE usage (
    day TEXT NOT NULL,
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    target TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (day, key, model, target)
) WITHOUT ROWID"""

COUNT_ATTEMPTS = (
    "ALTER TABLE usage ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0",
    "UPDATE usage SET attempts = requests",
)
"""Earlier versions counted requests alone."""

_INSERT = """INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET
        requests = requests + excluded.requests,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        cost = cost + excluded.cost,
        attempts = attempts + excluded.attempts"""
_SELECT = "SELECT * FROM usage WHERE day >= ? ORDER BY day, key, model, target"
_KEY_DAYS = """SELECT day, key, sum(input_tokens + output_tokens), sum(cost) FROM usage
    WHERE day >= ? GROUP BY day, key"""
_DROP = "DELETE FROM usage WHERE day < ?"


class UsageStore(Protocol):
    """All methods raise StoreError. Days are dates as `2027-01-31`."""

    async def add_usage(self, rows: Sequence[UsageRow], forget_before: str) -> None:
        """Add to what is stored of the same day, key, model and target, and delete what is older than a day."""

    async def load_usage(self, since: str) -> list[UsageRow]:
        """The rows from a day on, in order."""

    async def load_key_days(self, since: str) -> list[KeyDay]:
        """What each key used from a day on, by day."""


class ProxyStore(ResponseStore, UsageStore, Protocol):
    """Everything that a proxy stores."""


def insert_usage(connection: sqlite3.Connection, rows: Iterable[UsageRow]) -> None:
    """Add to the rows of the table. Call it in a transaction."""
    connection.executemany(_INSERT, rows)


def drop_usage(connection: sqlite3.Connection, before: str) -> None:
    """Delete the rows of earlier days."""
    connection.execute(_DROP, (before,))


def select_usage(connection: sqlite3.Connection, since: str) -> list[UsageRow]:
    """The rows of the table from a day on."""
    return [UsageRow(*row) for row in connection.execute(_SELECT, (since,))]


def select_key_days(connection: sqlite3.Connection, since: str) -> list[KeyDay]:
    """The sums of the table for each key and day from a day on."""
    return [KeyDay(*row) for row in connection.execute(_KEY_DAYS, (since,))]
