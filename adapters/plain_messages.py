"""Schemas that accept the most frequent messages at once.

Most messages have a role and a text, and nothing else. A schema judges each by the rules for every kind of message,
and that takes most of the time in which a request is validated. The schema made here is equivalent:

    {"items": RULE}   becomes   {"items": {"anyOf": [PLAIN, RULE]}}

PLAIN accepts what has only a text and a role with which RULE takes every text; RULE judges the others.
"""

from __future__ import annotations

from collections.abc import Callable

import jsonschema_rs

from dragoman.schemas import Schema

__all__ = ["put_plain_first"]

_LISTS = ("messages", "input")
_ROLES = ("system", "developer", "user", "assistant")
_TEXTS = ("", " ", "x", "0", "\n" * 99)
"""If a rule depends on the text, it refuses one of these. No schema limits the length of a message's text alone; a test
sees to that."""


def put_plain_first(schema: Schema) -> Schema:
    """An equivalent schema of a request, the same object if the request has no messages."""
    properties: Schema = schema.get("properties", {})
    lists = {name: properties[name] for name in _LISTS if isinstance(properties.get(name), dict)}
    made = {name: _change_list(rule, schema.get("$defs", {})) for name, rule in lists.items()}
    return schema if made == lists else {**schema, "properties": {**properties, **made}}


def _change_list(rule: Schema, definitions: Schema) -> Schema:
    """The rule of a list, with other rules for its items."""
    made = dict(rule)
    if isinstance(rule.get("items"), dict):
        made["items"] = _change_item(rule["items"], definitions)
    if "prefixItems" in rule:
        made["prefixItems"] = [_change_item(one, definitions) for one in rule["prefixItems"]]
    return made


def _change_item(rule: Schema, definitions: Schema) -> Schema:
    accepts = jsonschema_rs.Draft202012Validator({"$defs": definitions, "allOf": [rule]}).is_valid
    roles = [role for role in _ROLES if _takes_every_text(accepts, role)]
    if not roles:
        return rule
    plain: Schema = {
        "type": "object",
        "properties": {"role": {"enum": roles}, "content": {"type": "string"}},
        "required": ["role", "content"],
        "additionalProperties": False,
    }
    return {"anyOf": [plain, rule]}


def _takes_every_text(accepts: Callable[[object], bool], role: str) -> bool:
    return all(accepts({"role": role, "content": text}) for text in _TEXTS)
