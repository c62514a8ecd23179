"""Finds the rule behind a change: the schema that the value meets, and where its rule comes from (`x-source`).

Receipts do not have it, because it would cost time on every request. It is looked up when someone looks.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from dragoman.adapters.changes import Change
from dragoman.adapters.paths import Path, format_path
from dragoman.adapters.pipeline import TargetPlan
from dragoman.adapters.registry import dialects
from dragoman.schemas import Schema, SchemaNotFound, load

__all__ = ["Side", "find_source"]

Side: TypeAlias = Literal["request", "reply"]


def find_source(change: Change, side: Side, plan: TargetPlan, dialect: str, protocol: str) -> str | None:
    """The schema that decides about the value, and the source of its rule: of a request that of the provider, of a
    reply that of the client's dialect. None if no schema does."""
    if side == "request":
        called = plan.protocols.get(protocol)
        name = f"{plan.dialect.name}/{protocol if called is None else called.protocol}.request"
        profile = plan.target.profile
    else:
        name, profile = f"{dialect}/{protocol}.reply", dialects[dialect].served_profile
    try:
        schema = load(name, profile)
    except SchemaNotFound:
        return None
    if not (path := change.after or change.before):
        return None
    found, source = _find_rule(schema, path)
    shown = f"{name} ({profile})"
    if not found:
        return f"{shown}: it has no {format_path(path[:1])}"
    return f"{shown}: {source}" if source else shown


def _find_rule(schema: Schema, path: Path) -> tuple[bool, str]:
    """Whether the schema has the first key of the path, and the source nearest to its end."""
    node: Any = schema
    found, source = False, ""
    for key in path:
        node = _resolve(schema, node)
        node = node.get("items") if isinstance(key, int) else (node.get("properties") or {}).get(key)
        if not isinstance(node, dict):
            break
        found = True
        resolved = _resolve(schema, node)
        given = node.get("x-source") or resolved.get("x-source")
        source = "; ".join(given) if isinstance(given, list) else given or source
    return found, source


def _resolve(schema: Schema, node: Any) -> dict[str, Any]:
    """The definition that a node refers to, or the node itself."""
    for _ in range(8):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            break
        node = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    return node if isinstance(node, dict) else {}
