"""Files of a model folder, opened with distrust: nothing outside the folder, nothing absurdly large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .graph import Graph

__all__ = ["TEXT_LIMIT", "FolderError", "check_external", "inside", "read_json", "read_text"]

TEXT_LIMIT = 4_000_000
"""Bytes: the most that a configuration file or a template may have."""


class FolderError(Exception):
    """A model folder that cannot be served; the message says what is wrong or missing, where, and what to do."""


def inside(folder: Path, name: str) -> Path:
    """The regular file `name` of the folder. Raises FolderError for what is elsewhere, also by a link, or no file."""
    file = folder / name
    real = file.resolve()
    if Path(name).is_absolute() or not real.is_relative_to(folder.resolve()):
        raise FolderError(
            f"{file} leads out of the folder, to {real}; a model folder must hold its own files. A folder of a download"
            " cache is made of links: copy it with `cp -rL`"
        )
    if not real.is_file():
        raise FolderError(f"{file} is missing" if not real.exists() else f"{file} is no regular file")
    return file


def read_text(folder: Path, name: str, limit: int = TEXT_LIMIT) -> str | None:
    """The text of a file of the folder, None if it is not there. Raises FolderError."""
    if not (folder / name).exists() and not (folder / name).is_symlink():
        return None
    file = inside(folder, name)
    size = file.stat().st_size
    if size > limit:
        raise FolderError(f"{file} has {size} bytes; more than {limit} are not read")
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{file} cannot be read: {error}") from None


def read_json(folder: Path, name: str, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """The JSON object in a file of the folder, empty if the file is not there. Raises FolderError."""
    text = read_text(folder, name, limit)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{folder / name} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise FolderError(f"{folder / name} holds no JSON object")
    return found


def check_external(model: Path, graph: Graph) -> None:
    """Every tensor stored beside the model must lie whole in a file of the same directory. Raises FolderError."""
    sizes: dict[str, int] = {}
    for location, offset, length in graph.external:
        if location not in sizes:
            sizes[location] = inside(model.parent, location).stat().st_size
        if offset < 0 or (length or 0) < 0 or offset + (length or 0) > sizes[location]:
            raise FolderError(
                f"{model} wants bytes {offset} to {offset + (length or 0)} of {location}, which has"
                f" {sizes[location]}: is the file downloaded whole?"
            )
