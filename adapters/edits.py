"""Editing a body that shares its nested values with another: containers on the way are copied, never altered.

The outermost object is the caller's own and is altered in place.
"""

from __future__ import annotations

from typing import Any

from .call import JsonObject
from .paths import Path

__all__ = ["remove", "replace"]


def replace(body: JsonObject, path: Path, value: Any) -> None:
    """Put `value` at `path`, which must lead through existing containers."""
    _parent(body, path)[path[-1]] = value


def remove(body: JsonObject, path: Path) -> None:
    """Take away what is at `path`: a key of an object, or an item of an array."""
    del _parent(body, path)[path[-1]]


def _parent(body: JsonObject, path: Path) -> Any:
    container: Any = body
    for part in path[:-1]:
        container[part] = container[part].copy()
        container = container[part]
    return container
