"""Validating a body by a schema file: fast if it is valid, else what is wrong, where, in words for a user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import jsonschema_rs
import orjson

from dragoman.schemas import Schema, load, names

from .call import JsonObject
from .faults import Fault, Kind
from .paths import Path, format_path
from .suggestions import did_you_mean

__all__ = ["Validator", "Violation", "load_validator", "request_validator"]

_SHOWN = 80
_SUGGESTED = 10  # keys of one object for which a known name is looked up
_NOT_TOGETHER = {"$defs", "properties", "required"}  # keywords that look at one key, or at its presence


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `path` names the culprit itself: the missing or unexpected key if there is one.

    `keyword` is the JSON Schema keyword that failed, `limit` its value, `value` what was found, `rule` the subschema.
    """

    path: Path
    keyword: str
    limit: Any
    value: Any
    rule: Schema
    message: str

    def to_fault(self, kind: Kind = "invalid_request") -> Fault:
        """The fault of that kind; an unknown key is always `extra_parameter`."""
        if self.keyword == "additionalProperties":
            kind = "extra_parameter"
        return Fault(kind, self.message, self.path, self.value, code=self.code)

    @property
    def code(self) -> str:
        """The machine-readable word, from the vocabulary of OpenAI's own errors."""
        word = _CODES.get(self.keyword, "invalid_value")
        number = "integer" if isinstance(self.value, int) else "decimal"
        return word.format(number=number)


_CODES = {
    "required": "missing_required_parameter",
    "type": "invalid_type",
    "additionalProperties": "unknown_parameter",
    "minimum": "{number}_below_min_value",
    "exclusiveMinimum": "{number}_below_min_value",
    "maximum": "{number}_above_max_value",
    "exclusiveMaximum": "{number}_above_max_value",
    "minLength": "string_below_min_length",
    "maxLength": "string_above_max_length",
    "minItems": "array_below_min_length",
    "maxItems": "array_above_max_length",
    "maxProperties": "object_above_max_properties",
}


class Validator:
    """One schema, compiled. Remote and file references are never opened."""

    def __init__(self, name: str, profile: str) -> None:
        self.name = name
        self.schema = load(name, profile)
        self.known = frozenset(self.schema.get("properties", ()))
        self._validator = jsonschema_rs.Draft202012Validator(self.schema, retriever=_refuse)
        self.accepts = self._validator.is_valid

    def accepts_again(self, body: JsonObject, accepted: JsonObject) -> bool:
        """`accepts`, for a body that may share its values with one that was accepted. If only the model's name differs,
        and no rule looks at it and other keys together, only the name is validated."""
        if self._accepts_name is None or body.keys() != accepted.keys():
            return self.accepts(body)
        for key, value in body.items():
            if value is not accepted[key] and key != "model":
                return self.accepts(body)
        return "model" not in body or self._accepts_name(body["model"])

    @cached_property
    def _accepts_name(self) -> Callable[[Any], bool] | None:
        rule = self.schema.get("properties", {}).get("model")
        together = {key: self.schema[key] for key in self.schema.keys() - _NOT_TOGETHER}
        if not isinstance(rule, dict) or any(
            word in orjson.dumps([rule, together]) for word in (b'"$ref"', b'"model"')
        ):
            return None
        return jsonschema_rs.Draft202012Validator(rule, retriever=_refuse).is_valid

    def violations(self, body: Any) -> Iterator[Violation]:
        """Everything that is wrong, in the order of the schema."""
        for error in self._validator.iter_errors(body):
            yield from self._explain(body, error)

    def check(self, body: Any) -> None:
        """Raise the first violation as a client's fault."""
        if not self.accepts(body):
            raise next(self.violations(body)).to_fault()

    def _explain(self, body: Any, error: jsonschema_rs.ValidationError) -> Iterator[Violation]:
        keyword, limit = error.kind.name, error.kind.value
        path = _true_path(body, error.instance_path)
        value: Any = error.instance
        rule, said = self._rule(error.schema_path)
        if keyword == "required":
            path, value = (*path, limit), None
        names = limit if keyword == "additionalProperties" else [None]
        for position, name in enumerate(names):
            place = path if name is None else (*path, name)
            found = value if name is None else value.get(name)
            text = said or _sentence(keyword, limit if name is None else name, found, error.message)
            if name is not None and position < _SUGGESTED:
                text += did_you_mean(name, rule.get("properties", ()))
            yield Violation(place, keyword, limit, found, rule, f"{format_path(place) or 'The body'} {text}")

    def _rule(self, schema_path: list[str | int]) -> tuple[Schema, str | None]:
        """The subschema that failed, and the nearest `x-message` on the way down to it."""
        rule: Any = self.schema
        said = None
        for part in schema_path[:-1]:
            rule = rule[part]
            if isinstance(rule, dict):
                said = rule.get("x-message", said)
        return rule, f"is not valid: {said}" if said else None


@cache
def load_validator(name: str, profile: str = "documented") -> Validator:
    """The compiled schema of that name and profile, made once."""
    return Validator(name, profile)


@cache
def request_validator(dialect: str, protocol: str, profile: str) -> Validator | None:
    """The validator by which a dialect reads its clients' requests; None for a dialect without schemas."""
    name = f"{dialect}/{protocol}.request"
    return load_validator(name, profile) if name in names() else None


def _refuse(uri: str) -> Any:
    raise ValueError(f"reference {uri!r} leaves the schema")


def _sentence(keyword: str, limit: Any, value: Any, fallback: str) -> str:
    template = _SENTENCES.get(keyword)
    if limit == 1 and keyword in _EMPTY:
        return "must not be empty"
    if template is None:
        return f"is not valid: {fallback[:200]}"
    if "{" not in template:
        return template
    listed = _types(limit) if keyword == "type" else _listed(limit)
    return template.format(limit=listed, got=_shown(value), found=_found(value), size=_size(value))


_EMPTY = ("minLength", "minItems", "minProperties")
_SENTENCES = {
    "required": "is required",
    "type": "must be of type {limit}, got {found}",
    "enum": "must be one of {limit}, got {got}",
    "const": "must be {limit}, got {got}",
    "minimum": "must be at least {limit}, got {got}",
    "exclusiveMinimum": "must be greater than {limit}, got {got}",
    "maximum": "must be at most {limit}, got {got}",
    "exclusiveMaximum": "must be less than {limit}, got {got}",
    "minLength": "must have at least {limit} characters, got {size}",
    "maxLength": "must have at most {limit} characters, got {size}",
    "minItems": "must have at least {limit} items, got {size}",
    "maxItems": "must have at most {limit} items, got {size}",
    "minProperties": "must have at least {limit} keys, got {size}",
    "maxProperties": "must have at most {limit} keys, got {size}",
    "pattern": "must match {limit}, got {got}",
    "additionalProperties": "is not a known parameter",
}


def _true_path(body: Any, path: list[str | int]) -> Path:
    """The path with keys as they are: the validator gives a key that is all digits as a number."""
    keys: list[str | int] = []
    for part in path:
        keys.append(str(part) if isinstance(body, dict) else part)
        body = body[keys[-1]]
    return tuple(keys)


def _types(limit: Any) -> str:
    """`string, array or null`."""
    names = sorted([limit] if isinstance(limit, str) else limit, key="null".__eq__)
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _listed(limit: Any) -> str:
    if isinstance(limit, list):
        return ", ".join(_listed(one) for one in limit if one is not None)
    return limit if isinstance(limit, str) else _shown(limit)


def _found(value: Any) -> str:
    """The type, and the value too if there is more to it."""
    shown, kind = _shown(value), _type_of(value)
    return kind if shown == kind else f"{kind} {shown}"


def _shown(value: Any) -> str:
    """A value as JSON, cut short; of an array or an object no more than that it is one."""
    if isinstance(value, dict | list):
        return _type_of(value)
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{json.dumps(value[:_SHOWN], ensure_ascii=False)[:-1]}..."
    return json.dumps(value, ensure_ascii=False)


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
