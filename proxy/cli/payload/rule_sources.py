"""The source of a violated rule: the `x-source` of its field, or of the nearest field around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.validation import Violation
from dragoman.schemas import Schema

__all__ = ["find_source"]

_BRANCHES = ("allOf", "anyOf", "oneOf")
_NESTED = ("if", "then", "else")


def find_source(violation: Violation, schema: Schema) -> tuple[str, ...]:
    """The texts of `x-source` for the violated rule; empty if the schema has none."""
    own = violation.rule.get("x-source")
    if own is None and violation.keyword == "required":
        own = violation.rule.get("properties", {}).get(violation.limit, {}).get("x-source")
    if own is None:
        own = _find_nearest(violation, schema)
    return () if own is None else (own,) if isinstance(own, str) else tuple(own)


def _find_nearest(violation: Violation, schema: Schema) -> Any:
    """Follow the path as far as the schema describes it, and return the last source on the way."""
    rules, found = list(_list_rules(schema, schema, ())), None
    for part in violation.path:
        below = [child for rule in rules for child in _list_child_rules(rule, part)]
        rules = [each for child in below for each in _list_rules(child, schema, ())]
        found = next((rule["x-source"] for rule in rules if "x-source" in rule), found)
    return found


def _list_child_rules(rule: Schema, part: str | int) -> Iterator[Schema]:
    if isinstance(part, str):
        yield rule.get("properties", {}).get(part, {})
    else:
        yield rule.get("items", {})
        yield from rule.get("prefixItems", [])[part : part + 1]


def _list_rules(rule: Any, root: Schema, seen: tuple[str, ...]) -> Iterator[Schema]:
    """The rule, and all rules inside it that apply to the same value."""
    if not isinstance(rule, dict):
        return
    yield rule
    reference = rule.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target: Any = root
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]
        yield from _list_rules(target, root, (*seen, reference))
    for key in _NESTED:
        yield from _list_rules(rule.get(key), root, seen)
    for key in _BRANCHES:
        for branch in rule.get(key, ()):
            yield from _list_rules(branch, root, seen)
