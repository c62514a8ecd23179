"""From the configuration to a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dragoman.proxy.config.models import Store

from .interface import ResponseStore, StoreError, StoreLimits
from .memory import MemoryStore
from .sqlite import SqliteStore

__all__ = ["file_of", "open_store"]

_FILE = Path("dragoman", "responses.db")


async def open_store(choice: Store, report: Callable[[StoreError], None]) -> ResponseStore | None:
    """The store that is configured, or None for the kind `none`. Raises StoreError.

    `report` is told of trouble that no exchange meets.
    """
    if choice.kind == "none":
        return None
    limits = StoreLimits(
        retention=choice.retention,
        max_size=choice.max_size,
        max_response=min(choice.max_response, choice.max_size),
        max_chain=choice.max_chain,
    )
    if choice.kind == "memory":
        return MemoryStore(limits)
    return await SqliteStore.open(file_of(choice), limits, report=report)


def file_of(choice: Store, env: Mapping[str, str] = os.environ) -> Path:
    """The file of the kind sqlite: by default below the user's folder for state, where the XDG base directory
    specification 0.8 puts it. Raises StoreError."""
    if choice.path is not None:
        return Path(choice.path)
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # others are to be ignored
        return Path(state) / _FILE
    try:
        return Path.home() / ".local" / "state" / _FILE
    except RuntimeError as error:
        text = "there is no place for the store of responses: neither XDG_STATE_HOME nor a home folder is set"
        raise StoreError("unusable_path", text) from error
