"""Errors of SQLite and of the operating system, translated to StoreError."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from .interface import Reason, StoreError

__all__ = ["as_path_error", "as_store_error", "is_busy"]


class _Cause(NamedTuple):
    """The reason of a StoreError, and the sentence in its text."""

    reason: Reason
    text: str


_LOCKED = _Cause("locked", "another process held its lock for too long")
_CAUSES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _Cause("disk_full", "there is no room left on its disk"),
    sqlite3.SQLITE_CORRUPT: _Cause("corrupt", "the file is damaged; move it away to begin a new one"),
    sqlite3.SQLITE_NOTADB: _Cause("not_ours", "the file is not an SQLite database; name another path"),
    sqlite3.SQLITE_READONLY: _Cause("unusable_path", "the file, or its folder, cannot be written to"),
    sqlite3.SQLITE_CANTOPEN: _Cause("unusable_path", "the file cannot be opened"),
    sqlite3.SQLITE_PERM: _Cause("unusable_path", "the file cannot be opened"),
    sqlite3.SQLITE_IOERR: _Cause("failed", "its disk reported an error"),
}
_OTHER = _Cause("failed", "SQLite reported an error")


def as_store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """The store's error for an error of SQLite."""
    cause = _CAUSES.get(_code(error), _OTHER)
    return StoreError(cause.reason, f"the store {path}: {cause.text} ({error})")


def is_busy(error: sqlite3.Error) -> bool:
    """True if another connection holds the lock."""
    return _code(error) == sqlite3.SQLITE_BUSY


def as_path_error(error: OSError | ValueError, path: Path) -> StoreError:
    """The store's error for an error of the operating system about its file or folder."""
    reason, suffix = str(error), ""
    if isinstance(error, OSError):
        reason = error.strerror or reason
        suffix = f" at {error.filename}" if error.filename not in (None, str(path)) else ""
    return StoreError("unusable_path", f"the store {path} cannot be opened: {reason}{suffix}")


def _code(error: sqlite3.Error) -> int:
    """The primary result code, without the extended bits; 0 for errors of the module sqlite3 itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
