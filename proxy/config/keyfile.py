"""Files that hold a provider's key, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

__all__ = ["BadKeyFile", "Stamp", "read_key", "stamp_of"]

_MOST_BYTES = 64 * 1024

Stamp: TypeAlias = tuple[int, int, int, int]
"""What differs between two versions of a file: device, inode, size, time of change in nanoseconds."""


class BadKeyFile(ValueError):
    """The file holds no key; the text says why and never shows what it holds."""


def stamp_of(path: Path) -> Stamp:
    """Raises OSError."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_key(path: Path) -> str:
    """The key, without the space around it. Raises OSError, BadKeyFile."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadKeyFile("it is larger than 64 KiB")
    key = data.strip()
    if not key:
        raise BadKeyFile("it is empty")
    if not all(0x21 <= byte <= 0x7E for byte in key):
        raise BadKeyFile("it holds something that cannot stand in an HTTP header: a key is one line of visible ASCII")
    return key.decode("ascii")
