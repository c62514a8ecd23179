"""Files that contain a provider's key and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

__all__ = ["BadKeyFile", "FileStamp", "read_key", "read_stamp"]

_MOST_BYTES = 64 * 1024

FileStamp: TypeAlias = tuple[int, int, int, int]
"""Identifies a version of a file: device, inode, size in bytes, time of the last change in nanoseconds."""


class BadKeyFile(ValueError):
    """The file contains no key. The text says why, and never quotes the file."""


def read_stamp(path: Path) -> FileStamp:
    """Read the stamp of the file's present version. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_key(path: Path) -> str:
    """Read the key, without white space around it. Raises OSError, BadKeyFile."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadKeyFile("it is larger than 64 KiB")
    key = data.strip()
    if not key:
        raise BadKeyFile("it is empty")
    if not all(0x21 <= byte <= 0x7E for byte in key):
        raise BadKeyFile("it contains characters that an HTTP header cannot have: a key is one line of visible ASCII")
    return key.decode("ascii")
