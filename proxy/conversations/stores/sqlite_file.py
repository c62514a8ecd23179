"""The SQLite file of a store: its place, its mode, its tables, and connections to it.

The application id in the file's header tells that the file is ours, the user version which of FORMATS it has. Both are
looked at before anything is written, so that the database of another program stays as it is.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .interface import StoreError
from .mishaps import is_busy, unusable

__all__ = ["FORMATS", "connect_reader", "connect_writer", "transaction"]

_APPLICATION = 0x64726167  # "drag"
_MODE = 0o600
_FOLDER_MODE = 0o700
_RETRY = 0.02  # seconds
_WAL_LIMIT = 64 * 1024**2  # bytes that the -wal file keeps after a checkpoint

FORMATS = (
    (
        """CREATE TABLE response (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            stored_at REAL NOT NULL,
            raw_size INTEGER NOT NULL,
            body BLOB NOT NULL,
            UNIQUE (owner, id)
        )""",
        "CREATE INDEX response_by_age ON response (stored_at)",
        "CREATE TABLE total (bytes INTEGER NOT NULL)",
        "INSERT INTO total VALUES (0)",
        """CREATE TRIGGER response_in AFTER INSERT ON response
            BEGIN UPDATE total SET bytes = bytes + length(NEW.body); END""",
        """CREATE TRIGGER response_out AFTER DELETE ON response
            BEGIN UPDATE total SET bytes = bytes - length(OLD.body); END""",
    ),
    (
        """CREATE TABLE item (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            response TEXT NOT NULL,
            PRIMARY KEY (owner, id)
        ) WITHOUT ROWID""",
        "CREATE INDEX item_by_response ON item (owner, response)",
        """CREATE TRIGGER item_out AFTER DELETE ON response
            BEGIN DELETE FROM item WHERE owner = OLD.owner AND response = OLD.id; END""",
    ),
)
"""The statements that lead from each version to the next."""


def connect_writer(path: Path, patience: float) -> sqlite3.Connection:
    """A connection to a file that exists from now on and has the newest format. Raises StoreError and sqlite3.Error."""
    _prepare(path)
    connection = _connect(path, patience)
    try:
        with transaction(connection, "BEGIN"):
            _version(connection, path)
        _use_wal(connection, path, patience)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, patience: float) -> sqlite3.Connection:
    """A connection to a file that a writer has opened before."""
    connection = _connect(path, patience)
    connection.execute("PRAGMA query_only = ON")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Everything inside is written, or nothing. Waits for the lock of other processes at the beginning only; with
    `BEGIN`, everything inside is read from one state of the file."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=patience, isolation_level=None)


def _prepare(path: Path) -> None:
    """Make the file where there is none, and see whether the one that is there can be used. Raises StoreError.

    A file that exists is not opened here: closing it again would give up the locks that SQLite holds on it elsewhere
    in this process.
    """
    try:
        if path.parent.exists() and not path.parent.is_dir():
            raise StoreError("unusable_path", f"the store {path} cannot be opened: {path.parent} is no folder")
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE))
        except FileExistsError:
            _check(path, path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise unusable(error, path) from error


def _check(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise StoreError("unusable_path", f"the store {path} is a folder; name a file, such as {path / 'responses.db'}")
    if not stat.S_ISREG(mode):
        raise StoreError("unusable_path", f"the store {path} is no regular file; name another path")
    for place, wanted in ((path, os.R_OK | os.W_OK), (path.parent, os.W_OK | os.X_OK)):
        if not os.access(place, wanted):
            text = f"the store {path} cannot be used: no permission to write to {place}"
            raise StoreError("unusable_path", text)


def _use_wal(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    """SQLite does not wait for locks while it changes the journal's mode, so this does."""
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY)
    if mode != "wal":
        text = f"the store {path} lies on a file system that SQLite's WAL mode cannot use; name a path on a local disk"
        raise StoreError("unusable_path", text)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The format's version, 0 for a file without anything. Raises StoreError for files of others."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (things,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION and (application or version or things):
        raise StoreError("not_ours", f"the store {path} is the database of another program; name another path")
    if version > len(FORMATS):
        text = f"the store {path} has format {version}, made by a newer dragoman; this one knows up to {len(FORMATS)}"
        raise StoreError("newer_version", f"{text}. Use the newer one, or name another path")
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        version = _version(connection, path)
        for statements in FORMATS[version:]:
            for statement in statements:
                connection.execute(statement)
        if version < len(FORMATS):
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(FORMATS)}")
