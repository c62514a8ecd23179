"""The files of a model folder, which is not trusted: no file outside the folder and no oversized file is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .onnx_outline import GraphOutline

__all__ = ["TEXT_LIMIT", "FolderError", "check_external_data", "read_json", "read_text", "resolve_file"]

TEXT_LIMIT = 4_000_000
"""The largest configuration file or template, in bytes."""


class FolderError(Exception):
    """A model folder cannot be served. The message says what is wrong or missing, where, and what to do."""


def resolve_file(folder: Path, name: str) -> Path:
    """Return the regular file `name` of the folder. Raises FolderError if it is missing or leads out of the folder."""
    file = folder / name
    real = file.resolve()
    if Path(name).is_absolute() or not real.is_relative_to(folder.resolve()):
        raise FolderError(
            f"{file} leads out of the folder, to {real}; a model folder must contain its own files. A folder of a"
            " download cache consists of links: copy it with `cp -rL`"
        )
    if not real.is_file():
        raise FolderError(f"{file} is missing" if not real.exists() else f"{file} is not a regular file")
    return file


def read_text(folder: Path, name: str, limit: int = TEXT_LIMIT) -> str | None:
    """Return the text of a file of the folder, or None if the file is missing. Raises FolderError."""
    if not (folder / name).exists() and not (folder / name).is_symlink():
        return None
    file = resolve_file(folder, name)
    size = file.stat().st_size
    if size > limit:
        raise FolderError(f"{file} has {size} bytes; the limit is {limit}")
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{file} cannot be read: {error}") from None


def read_json(folder: Path, name: str, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """Return the JSON object in a file of the folder, empty if the file is missing. Raises FolderError."""
    text = read_text(folder, name, limit)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{folder / name} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise FolderError(f"{folder / name} does not contain a JSON object")
    return found


def check_external_data(model: Path, outline: GraphOutline) -> None:
    """Check that all external tensor data is inside files of the model's directory. Raises FolderError."""
    sizes: dict[str, int] = {}
    for location, offset, length in outline.external_data:
        if location not in sizes:
            sizes[location] = resolve_file(model.parent, location).stat().st_size
        if offset < 0 or (length or 0) < 0 or offset + (length or 0) > sizes[location]:
            raise FolderError(
                f"{model} needs bytes {offset} to {offset + (length or 0)} of {location}, which has"
                f" {sizes[location]}: is the download complete?"
            )
