"""Where a broken rule comes from: the `x-source` of its field, or of the nearest field around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.validation import Violation
from dragoman.schemas import Schema

__all__ = ["source_of"]

_BRANCHES = ("allOf", "anyOf", "oneOf")
_NESTED = ("if", "then", "else")


def source_of(violation: Violation, schema: Schema) -> tuple[str, ...]:
    """As many texts as the schema has for it, none where it has none."""
    own = violation.rule.get("x-source")
    if own is None and violation.keyword == "required":
        own = violation.rule.get("properties", {}).get(violation.limit, {}).get("x-source")
    if own is None:
        own = _nearest(violation, schema)
    return () if own is None else (own,) if isinstance(own, str) else tuple(own)


def _nearest(violation: Violation, schema: Schema) -> Any:
    """Down the path as far as the schema knows it; the last source on the way."""
    rules, found = list(_parts(schema, schema, ())), None
    for part in violation.path:
        below = [child for rule in rules for child in _children(rule, part)]
        rules = [part for child in below for part in _parts(child, schema, ())]
        found = next((rule["x-source"] for rule in rules if "x-source" in rule), found)
    return found


def _children(rule: Schema, part: str | int) -> Iterator[Schema]:
    if isinstance(part, str):
        yield rule.get("properties", {}).get(part, {})
    else:
        yield rule.get("items", {})
        yield from rule.get("prefixItems", [])[part : part + 1]


def _parts(rule: Any, root: Schema, seen: tuple[str, ...]) -> Iterator[Schema]:
    """A rule, and the rules that hold for the same value."""
    if not isinstance(rule, dict):
        return
    yield rule
    reference = rule.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target: Any = root
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]
        yield from _parts(target, root, (*seen, reference))
    for key in _NESTED:
        yield from _parts(rule.get(key), root, seen)
    for key in _BRANCHES:
        for branch in rule.get(key, ()):
            yield from _parts(branch, root, seen)
