"""Judges a value by a JSON Schema that a client sent, in bounded work.

The schema is small (`adapters/user_schemas.py`) and refers only to itself. References make it larger than it looks, and
combined with alternatives they make a judge's work exponential, so a schema is judged only if it is small with every
reference written out, and not recursive.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from dragoman.adapters.paths import format_path
from dragoman.adapters.validation import refuse_reference

__all__ = ["can_judge", "find_violation"]

_MOST_NODES = 20_000
"""Values of the schema, references written out."""

_MOST_WORK = 50_000_000
"""Those values times the characters of the text."""

_MOST_DEPTH = 64


class _TooLarge(Exception):
    """The schema is recursive, or too large."""


def find_violation(value: Any, schema: Any, size: int) -> str | None:
    """Describe the first violation of the schema by its place and its keyword; None if there is none, or if the schema
    cannot be judged: it is recursive, too large for a text of this size in characters, or not a valid schema."""
    judge = _create_judge(schema, size)
    error = None if judge is None else next(judge.iter_errors(value), None)
    if error is None:
        return None
    place, keyword = format_path(error.instance_path), error.schema_path[-1]
    return f"{place or 'the whole'} breaks the rule {keyword!r}"


def can_judge(schema: Any, size: int) -> bool:
    """Whether `find_violation` can judge a text of this size in characters by the schema."""
    return _create_judge(schema, size) is not None


def _create_judge(schema: Any, size: int) -> jsonschema_rs.Draft202012Validator | None:
    try:
        nodes = _count_nodes(schema, schema, frozenset(), 0)
        if nodes > _MOST_NODES or nodes * size > _MOST_WORK:
            return None
        return jsonschema_rs.Draft202012Validator(schema, retriever=refuse_reference)
    except (_TooLarge, ValueError, jsonschema_rs.ReferencingError):
        return None


def _count_nodes(node: Any, root: Any, open_references: frozenset[str], depth: int) -> int:
    """The number of values in a schema, with every reference written out. Raises _TooLarge."""
    if depth > _MOST_DEPTH:
        raise _TooLarge
    if isinstance(node, list):
        return 1 + _sum_nodes(node, root, open_references, depth)
    if not isinstance(node, dict):
        return 1
    count = 1 + _sum_nodes([one for key, one in node.items() if key != "$defs"], root, open_references, depth)
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in open_references:
            raise _TooLarge
        count += _count_nodes(_resolve(reference, root), root, open_references | {reference}, depth + 1)
    return count


def _sum_nodes(nodes: list[Any], root: Any, open_references: frozenset[str], depth: int) -> int:
    count = 0
    for node in nodes:
        count += _count_nodes(node, root, open_references, depth + 1)
        if count > _MOST_NODES:
            raise _TooLarge
    return count


def _resolve(reference: str, root: Any) -> Any:
    node = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, dict) else None
    return node
