"""Edit a body that shares its nested values with another: containers on the path are copied, never altered.

The outermost object is the caller's own and is altered in place.
"""

from __future__ import annotations

from typing import Any

from .call import JsonObject
from .paths import Path

__all__ = ["Edits", "remove", "replace"]


def replace(body: JsonObject, path: Path, value: Any) -> None:
    """Put `value` at `path`, which must lead through existing containers."""
    _copy_parents(body, path)[path[-1]] = value


def remove(body: JsonObject, path: Path) -> None:
    """Remove what is at `path`: a key of an object, or an item of an array."""
    del _copy_parents(body, path)[path[-1]]


class Edits:
    """Several edits of one body: each container is copied once at most."""

    def __init__(self, body: JsonObject) -> None:
        self.body = body
        self._copies: dict[int, Any] = {}  # by id, which stays unique because the copy itself is in here

    def replace(self, path: Path, value: Any) -> None:
        """Put `value` at `path`, which must lead through existing containers."""
        _copy_parents(self.body, path, self._copies)[path[-1]] = value

    def remove(self, path: Path) -> None:
        """Remove what is at `path`: a key of an object, or an item of an array."""
        del _copy_parents(self.body, path, self._copies)[path[-1]]

    def remove_parameter(self, path: Path) -> None:
        """Remove a parameter, or a member of one: a parameter of which nothing is left is removed too."""
        self.remove(path)
        if len(path) == 2 and self.body[str(path[0])] == {}:
            self.remove(path[:1])


def _copy_parents(body: JsonObject, path: Path, copies: dict[int, Any] | None = None) -> Any:
    container: Any = body
    for part in path[:-1]:
        inner = container[part]
        if copies is None or id(inner) not in copies:
            inner = container[part] = inner.copy()
            if copies is not None:
                copies[id(inner)] = inner
        container = inner
    return container
