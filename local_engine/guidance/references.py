"""Finds references in a JSON Schema that lead back to themselves without describing a value, as `{"$ref": "#"}` does.

Grammars of such schemas fail only when a token is chosen. A reference below `properties` or `items` may lead back: it
describes another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["has_endless_reference"]

_SAME_VALUE = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas describe the same value."""


def has_endless_reference(root: Any) -> bool:
    """Whether a reference in the schema leads back to itself. References out of the schema are ignored."""
    finished: set[int] = set()
    for start in _list_objects(root):
        path = [(start, _list_same_value(start, root))] if id(start) not in finished else []
        open_nodes = {id(start)}
        while path:
            node, others = path[-1]
            other = next(others, None)
            if other is None:
                path.pop()
                open_nodes.discard(id(node))
                finished.add(id(node))
            elif id(other) in open_nodes:
                return True
            elif id(other) not in finished:
                open_nodes.add(id(other))
                path.append((other, _list_same_value(other, root)))
    return False


def _list_objects(root: Any) -> Iterator[dict[str, Any]]:
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def _list_same_value(node: dict[str, Any], root: Any) -> Iterator[dict[str, Any]]:
    found = [_resolve(node.get("$ref"), root)]
    for keyword in _SAME_VALUE:
        members = node.get(keyword)
        found += members if isinstance(members, list) else []
    return (one for one in found if isinstance(one, dict))


def _resolve(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    node = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node
