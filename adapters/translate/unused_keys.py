"""Keys of a message, a part or a tool that a conversion did not use: each is recorded as a loss."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = ["record_unused_keys"]

_NOTHING: tuple[Any, ...] = (None, "", [], {})


def record_unused_keys(holder: JsonObject, used: Container[str], path: Path, ctx: Context, protocol: str) -> None:
    """`used` are the keys that the conversion of `holder` has looked at."""
    for key, value in holder.items():
        if key not in used and value not in _NOTHING:
            ctx.receipt.record_drop((*path, key), f"{protocol} has no place for it")
