"""Tells which JSON Schemas a provider of chat can follow strictly.

Source: OpenAI, Structured outputs: all fields must be required, and additionalProperties must be false in objects.
"""

from __future__ import annotations

from typing import Any

__all__ = ["is_strict"]

_OBJECTS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")


def is_strict(schema: Any) -> bool:
    """Whether each object in a JSON Schema requires all its properties and allows no others."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            continue
        if _describes_object(one) and not _is_closed(one):
            return False
        for key in _OBJECTS:
            waiting += one[key].values() if isinstance(one.get(key), dict) else ()
        for key in _LISTS:
            waiting += one[key] if isinstance(one.get(key), list) else ()
        waiting.append(one.get("items"))
    return True


def _describes_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def _is_closed(schema: dict[str, Any]) -> bool:
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    if not (isinstance(properties, dict) and isinstance(required, list)):
        return False
    return schema.get("additionalProperties") is False and all(name in required for name in properties)
