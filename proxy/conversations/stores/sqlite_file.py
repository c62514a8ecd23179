"""The SQLite file of a store: its permissions, its tables, and connections to it.

The application id in the file's header marks the file as dragoman's, the user version is the number of its format in
FORMATS. Both are checked before anything is written, so that the database of another program is never changed.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from dragoman.proxy.telemetry.usage_rows import UsageRow

from .interface import StoreError
from .records import Packed, item_ids, unpack
from .sqlite_errors import as_path_error, as_store_error, is_busy
from .usage import COUNT_ATTEMPTS, CREATE_USAGE, select_usage

__all__ = ["FORMATS", "INSERT_ITEM", "connect_reader", "connect_writer", "read_usage", "transaction"]

_APPLICATION = 0x64726167  # "drag"
_MODE = 0o600
_FOLDER_MODE = 0o700
_RETRY = 0.02  # seconds
_LOCK_TIMEOUT = 5.0  # seconds
_WAL_LIMIT = 64 * 1024**2  # bytes that the -wal file keeps after a checkpoint
_WAL_PAGES = 16_000  # pages in the -wal file after which a commit moves them into the file itself

INSERT_ITEM = "INSERT OR REPLACE INTO item (owner, id, response) VALUES (?, ?, ?)"

Step: TypeAlias = str | Callable[[sqlite3.Connection], None]


def _list_items(connection: sqlite3.Connection) -> None:
    """Fill the table of items with those of the responses that are stored."""
    rows = connection.execute("SELECT owner, id, raw_size, body FROM response ORDER BY rowid")
    for owner, response_id, raw_size, body in rows:
        items = [(owner, item, response_id) for item in item_ids(unpack(Packed(raw_size, body)))]
        connection.executemany(INSERT_ITEM, items)


FORMATS: tuple[tuple[Step, ...], ...] = (
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
        _list_items,
    ),
    (
        "CREATE TABLE clock (known_at REAL NOT NULL, doubted_at REAL)",
        "INSERT INTO clock SELECT stored_at, NULL FROM response ORDER BY stored_at DESC LIMIT 1",
    ),
    (CREATE_USAGE,),
    COUNT_ATTEMPTS,
    (
        "ALTER TABLE response ADD COLUMN batch_size INTEGER",
        "DROP TRIGGER response_in",
        """CREATE TRIGGER response_in AFTER INSERT ON response WHEN NEW.batch_size IS NOT 0
            BEGIN UPDATE total SET bytes = bytes + coalesce(NEW.batch_size, length(NEW.body)); END""",
    ),
)
"""The steps that lead from each version of the format to the next: statements, and functions for what SQL cannot do.

`batch_size` is the size of all bodies that a statement inserts, in the row of the last one, and 0 in the others.
Earlier versions leave it null: their rows count alone."""


def connect_writer(path: Path, lock_timeout: float) -> sqlite3.Connection:
    """Open a connection for writing; the file is created, or migrated to the newest format. Raises StoreError and
    sqlite3.Error."""
    _create_or_check(path)
    connection = _connect(path, lock_timeout)
    try:
        with transaction(connection, "BEGIN"):
            _check_version(connection, path)
        _use_wal(connection, path, lock_timeout)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA recursive_triggers = ON")  # a response that is replaced is deleted
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, lock_timeout: float) -> sqlite3.Connection:
    """Open a connection for reading, to a file that a writer has opened before. Raises sqlite3.Error."""
    connection = _connect(path, lock_timeout)
    connection.execute("PRAGMA query_only = ON")
    return connection


def read_usage(path: Path, since: str) -> list[UsageRow]:
    """The usage in a file from a day on, for programs that are not the proxy. Raises StoreError."""
    if not path.is_file():
        raise StoreError("unusable_path", f"there is no store {path}: no proxy has used it yet")
    try:
        with closing(connect_reader(path, _LOCK_TIMEOUT)) as connection:
            if _check_version(connection, path) < len(FORMATS):
                text = f"the store {path} was made by an earlier dragoman: start the proxy once with this one"
                raise StoreError("failed", text)
            return select_usage(connection, since)
    except sqlite3.Error as error:
        raise as_store_error(error, path) from error


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Run the body in a transaction, which commits at the end or rolls back. It waits for the lock of other processes
    only at the beginning. With `BEGIN`, the body reads one state of the file."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, lock_timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=lock_timeout, isolation_level=None)


def _create_or_check(path: Path) -> None:
    """Create the file, or check that the existing one is usable. Raises StoreError.

    An existing file is not opened here: closing it would release the locks that SQLite holds on it elsewhere in this
    process.
    """
    try:
        if path.parent.exists() and not path.parent.is_dir():
            raise StoreError("unusable_path", f"the store {path} cannot be opened: {path.parent} is not a folder")
        path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE))
        except FileExistsError:
            _check_file(path, path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise as_path_error(error, path) from error


def _check_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise StoreError("unusable_path", f"the store {path} is a folder; name a file, such as {path / 'responses.db'}")
    if not stat.S_ISREG(mode):
        raise StoreError("unusable_path", f"the store {path} is not a regular file; name another path")
    for place, wanted in ((path, os.R_OK | os.W_OK), (path.parent, os.W_OK | os.X_OK)):
        if not os.access(place, wanted):
            text = f"the store {path} cannot be used: no permission to write to {place}"
            raise StoreError("unusable_path", text)


def _use_wal(connection: sqlite3.Connection, path: Path, lock_timeout: float) -> None:
    """Set the journal's mode to WAL. SQLite does not wait for locks while it does so, hence the loop."""
    deadline = time.monotonic() + lock_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY)
    if mode != "wal":
        text = f"the store {path} is on a file system that SQLite's WAL mode cannot use; name a path on a local disk"
        raise StoreError("unusable_path", text)


def _check_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file's format, 0 for an empty file. Raises StoreError for the database of another
    program."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION and (application or version or tables):
        raise StoreError("not_ours", f"the store {path} is the database of another program; name another path")
    if version > len(FORMATS):
        text = f"the store {path} has format {version}; this version of dragoman supports formats up to {len(FORMATS)}"
        raise StoreError("newer_version", f"{text}. Use a newer dragoman, or name another path")
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest format."""
    with transaction(connection):
        version = _check_version(connection, path)
        for step in chain.from_iterable(FORMATS[version:]):
            if isinstance(step, str):
                connection.execute(step)
            else:
                step(connection)
        if version < len(FORMATS):
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(FORMATS)}")
