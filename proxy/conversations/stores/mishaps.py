"""What can go wrong with the file of a store, in words."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from .interface import Reason, StoreError

__all__ = ["explained", "is_busy", "unusable"]


class _Mishap(NamedTuple):
    reason: Reason
    text: str


_LOCKED = _Mishap("locked", "another process holds its lock for too long")
_MISHAPS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _Mishap("disk_full", "there is no room left on its disk"),
    sqlite3.SQLITE_CORRUPT: _Mishap("corrupt", "the file is damaged; move it away to begin a new one"),
    sqlite3.SQLITE_NOTADB: _Mishap("not_ours", "the file is no SQLite database; name another path"),
    sqlite3.SQLITE_READONLY: _Mishap("unusable_path", "the file, or its folder, cannot be written to"),
    sqlite3.SQLITE_CANTOPEN: _Mishap("unusable_path", "the file cannot be opened"),
    sqlite3.SQLITE_PERM: _Mishap("unusable_path", "the file cannot be opened"),
    sqlite3.SQLITE_IOERR: _Mishap("failed", "its disk gave an error"),
}
_OTHER = _Mishap("failed", "SQLite gave an error")


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of the store for one of SQLite."""
    mishap = _MISHAPS.get(_code(error), _OTHER)
    return StoreError(mishap.reason, f"the store {path}: {mishap.text} ({error})")


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY


def unusable(error: OSError | ValueError, path: Path) -> StoreError:
    """The error of the store for one that the operating system gave for its file or folder."""
    reason, where = str(error), ""
    if isinstance(error, OSError):
        reason = error.strerror or reason
        where = f" at {error.filename}" if error.filename not in (None, str(path)) else ""
    return StoreError("unusable_path", f"the store {path} cannot be opened: {reason}{where}")


def _code(error: sqlite3.Error) -> int:
    """The primary code, without what SQLite's extended codes add to it; 0 for errors of the module itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
