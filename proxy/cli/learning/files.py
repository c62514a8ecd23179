"""Writing files so that they are either whole or unchanged."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dragoman.proxy.cli.options import exit_with_error

__all__ = ["check_output", "write_atomically"]

STANDARD_OUTPUT = Path("-")


def check_output(file: Path, *, overwrite: bool) -> None:
    """Exit with status 2 if the file cannot be written."""
    if file == STANDARD_OUTPUT:
        return
    if file.exists() and not overwrite:
        exit_with_error(f"{file} exists; --force overwrites it")
    if file.is_dir() or not file.parent.is_dir():
        exit_with_error(f"cannot write {file}: {'this is a folder' if file.is_dir() else f'no folder {file.parent}'}")
    if not os.access(file.parent, os.W_OK):
        exit_with_error(f"cannot write {file}: no permission")


def write_atomically(file: Path, text: str, *, overwrite: bool) -> None:
    """Write a new file, or any if `overwrite` is set: whole, or not at all. Exits with status 2 on failure."""
    if file == STANDARD_OUTPUT:
        print(text, end="")
        return
    try:
        _replace(file, text, overwrite)
    except FileExistsError:
        exit_with_error(f"{file} exists; --force overwrites it")
    except OSError as error:
        exit_with_error(f"cannot write {file}: {error.strerror}")


def _replace(file: Path, text: str, overwrite: bool) -> None:
    """Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        if overwrite:
            os.replace(name, file)
        else:
            os.link(name, file)
    finally:
        Path(name).unlink(missing_ok=True)
