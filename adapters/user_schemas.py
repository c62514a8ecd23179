"""JSON Schemas that clients send, in tools and response formats: hostile input, never compiled, only bounded."""

from __future__ import annotations

from typing import Any

from .call import JsonObject
from .faults import Fault
from .paths import Path, dotted

__all__ = ["check_user_schemas"]

_MOST_CONTAINERS = 5000
_MOST_DEPTH = 64
_MOST_PATTERN = 1000
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SUSPECT = frozenset({*_REFERENCES, "pattern"})


def check_user_schemas(body: JsonObject) -> None:
    """References stay inside the schema; size, depth and patterns are bounded. Raises Fault."""
    for i, tool in enumerate(body.get("tools") or ()):
        function = tool.get("function")
        if isinstance(function, dict) and function.get("parameters"):
            _check(function["parameters"], ("tools", i, "function", "parameters"), "invalid_function_parameters")
    form = body.get("response_format")
    described = form.get("json_schema") if isinstance(form, dict) else None
    if isinstance(described, dict) and described.get("schema"):
        _check(described["schema"], ("response_format", "json_schema", "schema"), "invalid_json_schema")


def _check(schema: Any, path: Path, code: str) -> None:
    reason = _reason(schema)
    if reason is not None:
        raise Fault("invalid_request", f"{dotted(path)} {reason}", path, code=code)


def _reason(schema: Any) -> str | None:
    """Why a schema is refused, or None."""
    level, containers = [schema], 0
    for _ in range(_MOST_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not _SUSPECT.isdisjoint(value) and (reason := _bad_keyword(value)) is not None:
                    return reason
                value = value.values()
            below += [child for child in value if isinstance(child, (dict, list))]
        containers += len(below)
        if containers > _MOST_CONTAINERS:
            return f"has more than {_MOST_CONTAINERS} objects and arrays"
        if not below:
            return None
        level = below
    return f"is nested deeper than {_MOST_DEPTH} levels"


def _bad_keyword(schema: JsonObject) -> str | None:
    for keyword in _REFERENCES:
        target = schema.get(keyword)
        if isinstance(target, str) and not target.startswith("#"):
            return f"has a {keyword} that leaves the schema, {target[:100]!r}: a reference must begin with #"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and len(pattern) > _MOST_PATTERN:
        return f"has a pattern of more than {_MOST_PATTERN} characters"
    return None
