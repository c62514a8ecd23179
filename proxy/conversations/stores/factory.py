"""Factory of the store that the configuration chooses."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dragoman.proxy.config.models import Store

from .interface import StoreError, StoreLimits
from .memory import MemoryStore
from .usage import ProxyStore

__all__ = ["open_store", "store_path"]

_FILE = Path("dragoman", "responses.db")


async def open_store(config: Store, report: Callable[[StoreError], None]) -> ProxyStore | None:
    """Open the configured store; None for the kind `none`. Raises StoreError.

    `report` gets the errors of background work, which no exchange would raise.
    """
    if config.kind == "none":
        return None
    limits = StoreLimits(
        retention=config.retention,
        max_size=config.max_size,
        max_response=min(config.max_response, config.max_size),
        max_chain=config.max_chain,
    )
    if config.kind == "memory":
        return MemoryStore(limits)
    from .sqlite import SqliteStore  # loads SQLite itself

    return await SqliteStore.open(store_path(config), limits, report=report)


def store_path(config: Store, env: Mapping[str, str] = os.environ) -> Path:
    """The file of a store of the kind sqlite. Its default is in the user's state folder, as the XDG base directory
    specification 0.8 defines it. Raises StoreError."""
    if config.path is not None:
        return Path(config.path)
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # the specification says to ignore relative paths
        return Path(state) / _FILE
    try:
        return Path.home() / ".local" / "state" / _FILE
    except RuntimeError as error:
        text = "there is no folder for the store of responses: neither XDG_STATE_HOME nor a home folder is set"
        raise StoreError("unusable_path", text) from error
