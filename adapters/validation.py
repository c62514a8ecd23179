"""Validate bodies with schema files: fast if a body is valid, else with each error's path and a sentence about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

from dragoman.schemas import Schema, load, names

from .call import JsonObject
from .faults import Fault, Kind, join_faults
from .paths import Path, format_path, lookup
from .plain_messages import put_plain_first
from .suggestions import did_you_mean

__all__ = [
    "Validator",
    "Violation",
    "count_values",
    "load_validator",
    "refuse_reference",
    "request_validator",
    "walk_levels",
]

_SHOWN = 80
_MASK = "the value"  # in the judge's own sentences, which would otherwise quote values of any size
_MOST_VALUES = 500  # in a body that is searched for all its violations
_FIRST_ITEMS = 16  # of each array of a larger body that are searched
_LONGEST = 10_001  # items or characters of a value that an explanation looks at: one more than any array may have
_SUGGESTED = 10  # keys of one object, and objects, for which a known name is looked up
_MOST_KEYS = 1_000  # unknown keys of one object that are named
_NOT_TOGETHER = {"$defs", "properties", "required"}  # keywords about one key, or about its presence


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `path` leads to the value at fault: to the missing or unexpected key if there is one.

    `keyword` is the JSON Schema keyword that failed, `limit` its value, `value` what was found, `rule` the subschema.
    """

    path: Path
    keyword: str
    limit: Any
    value: Any
    rule: Schema
    message: str

    def to_fault(self, kind: Kind = "invalid_request") -> Fault:
        """Make a fault of that kind; for an unknown key it is always `extra_parameter`."""
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

    def __init__(self, name: str, profile: str, schema: Schema | None = None) -> None:
        """`schema` replaces the one with that name in that profile."""
        self.name, self.profile = name, profile
        self.schema = load(name, profile) if schema is None else schema
        properties: Schema = self.schema.get("properties", {})
        self.known = frozenset(properties)
        self.defined = frozenset(name for name in properties if "x-extra-parameter" not in properties[name])
        """The known keys but for those that a server takes as extra parameters."""
        quick = jsonschema_rs.Draft202012Validator(put_plain_first(self.schema), retriever=refuse_reference)
        self.accepts = quick.is_valid

    @cached_property
    def _judge(self) -> jsonschema_rs.Draft202012Validator:
        """What finds violations."""
        return jsonschema_rs.Draft202012Validator(self.schema, retriever=refuse_reference, mask=_MASK)

    def accepts_again(self, body: JsonObject, accepted: JsonObject) -> bool:
        """Whether the body is valid, given an accepted body that it may share its values with.

        If only `model` differs, and no rule is about `model` and other keys together, only `model` is validated.
        """
        if self._accepts_name is None or body.keys() != accepted.keys():
            return self.accepts(body)
        for key, value in body.items():
            if value is not accepted[key] and key != "model":
                return self.accepts(body)
        return "model" not in body or self._accepts_name(body["model"])

    def accepts_model(self, name: str) -> bool:
        """Whether a body stays valid if its `model` becomes this name. False also if the schema leaves that open."""
        return self._accepts_name is not None and self._accepts_name(name)

    @cached_property
    def _accepts_name(self) -> Callable[[Any], bool] | None:
        rule = self.schema.get("properties", {}).get("model")
        together = {key: self.schema[key] for key in self.schema.keys() - _NOT_TOGETHER}
        if not isinstance(rule, dict) or any(
            word in orjson.dumps([rule, together]) for word in (b'"$ref"', b'"model"')
        ):
            return None
        return jsonschema_rs.Draft202012Validator(rule, retriever=refuse_reference).is_valid

    def violations(self, body: Any) -> Iterator[Violation]:
        """Yield every violation, in the order of the schema. All are found at once, which costs 10 µs for each."""
        for number, error in enumerate(self._judge.iter_errors(self._shorten(body))):
            yield from self._explain(body, error, suggests=number < _SUGGESTED)

    def first_violation(self, body: Any) -> Violation | None:
        """Find one violation of a body; None if there is none."""
        try:
            self._judge.validate(self._shorten(body))
        except jsonschema_rs.ValidationError as error:
            return next(self._explain(body, error))
        return None

    def check(self, body: Any) -> None:
        """Check the body. Raises Fault `invalid_request`, or `extra_parameter`, for the first violation.

        The fault has others too, but of a large body not all: finding one takes up to 70 µs.
        """
        if not self.accepts(body):
            raise join_faults(violation.to_fault() for violation in self.find_violations(body))

    def find_violations(self, body: Any) -> Iterable[Violation]:
        """Find all violations of a small body. Of a large one, find those in the first items of its arrays, or one."""
        if count_values(body, _MOST_VALUES) < _MOST_VALUES:
            return self.violations(body)
        short = _cut(body, _FIRST_ITEMS)
        if count_values(short, _MOST_VALUES) == _MOST_VALUES or self.accepts(short):
            return filter(None, [self.first_violation(body)])
        return self.violations(short)

    def _shorten(self, body: Any) -> Any:
        """The body without the ends of very long values, if that violates the schema too: a judge copies values that
        are at fault."""
        if not _has_long_values(body):
            return body
        short = _cut(body, _LONGEST)
        if isinstance(body, dict):
            short |= {name: _cut(body[name], _LONGEST) for name in self.known & body.keys() - short.keys()}
        return body if self.accepts(short) else short

    def check_with_extras(self, body: Any) -> bool:
        """Check the body as `check`, but for unknown keys inside its values. Returns whether it has any."""
        if self.accepts(body):
            return False
        self.open.check(body)
        return True

    @cached_property
    def open(self) -> Validator:
        """The same rules without those that refuse unknown keys inside values."""
        inner = {key: _allow_other_keys(rule) for key, rule in self.schema.items()}
        return Validator(self.name, self.profile, inner)

    def _explain(
        self, body: Any, error: jsonschema_rs.ValidationError, *, suggests: bool = True
    ) -> Iterator[Violation]:
        keyword, limit = error.kind.name, error.kind.value
        path = _true_path(body, error.instance_path)
        value: Any = lookup(body, path) if path else body
        rule, rule_message = self._rule(error.schema_path)
        if keyword == "required":
            path, value = (*path, limit), None
        names = limit[:_MOST_KEYS] if keyword == "additionalProperties" else [None]
        for position, name in enumerate(names):
            place = path if name is None else (*path, name)
            found = value if name is None else value.get(name)
            text = rule_message or _write_sentence(keyword, limit if name is None else name, found, error.message)
            if name is not None and suggests and position < _SUGGESTED:
                text += did_you_mean(name, rule.get("properties", ()))
            yield Violation(place, keyword, limit, found, rule, f"{format_path(place) or 'The body'} {text}")

    def _rule(self, schema_path: list[str | int]) -> tuple[Schema, str | None]:
        """Return the subschema that failed, and the sentence of the nearest `x-message` above it."""
        rule: Any = self.schema
        rule_message = None
        for part in schema_path[:-1]:
            rule = rule[part]
            if isinstance(rule, dict):
                rule_message = rule.get("x-message", rule_message)
        return rule, f"is not valid: {rule_message}" if rule_message else None


@cache
def load_validator(name: str, profile: str = "documented") -> Validator:
    """Load the validator of the schema with that name in that profile. It is compiled once."""
    return Validator(name, profile)


@cache
def request_validator(dialect: str, protocol: str, profile: str) -> Validator | None:
    """Return the validator of a dialect's requests in a protocol; None if there is no such schema."""
    name = f"{dialect}/{protocol}.request"
    return load_validator(name, profile) if name in names() else None


def refuse_reference(uri: str) -> Any:
    """Refuse to open a reference that leaves the schema. Raises ValueError, always."""
    raise ValueError(f"reference {uri!r} leaves the schema")


def count_values(value: Any, most: int) -> int:
    """Count the values in a JSON value, itself included, but not beyond `most`."""
    count = 1
    for level in walk_levels(value):
        count += sum(len(one) for one in level if isinstance(one, dict | list))
        if count >= most:
            return most
    return count


def walk_levels(value: Any) -> Iterator[list[Any]]:
    """The values in a JSON value, level by level: itself, its items, their items."""
    level = [value]
    while level:
        yield level
        holders = [one for one in level if isinstance(one, dict | list)]
        level = [child for one in holders for child in (one.values() if isinstance(one, dict) else one)]


def _has_long_values(value: Any) -> bool:
    return any(
        isinstance(one, str | list | dict) and len(one) > _LONGEST for level in walk_levels(value) for one in level
    )


def _cut(value: Any, items: int) -> Any:
    """A copy of a JSON value without the ends of long arrays and of very long strings and objects."""
    if isinstance(value, dict):
        return {name: _cut(one, items) for name, one in islice(value.items(), _LONGEST)}
    if isinstance(value, list):
        return [_cut(one, items) for one in value[:items]]
    return value[:_LONGEST] if isinstance(value, str) else value


def _allow_other_keys(rule: Any) -> Any:
    if isinstance(rule, list):
        return [_allow_other_keys(one) for one in rule]
    if not isinstance(rule, dict):
        return rule
    return {key: _allow_other_keys(one) for key, one in rule.items() if (key, one) != ("additionalProperties", False)}


def _write_sentence(keyword: str, limit: Any, value: Any, fallback: str) -> str:
    template = _SENTENCES.get(keyword)
    if limit == 1 and keyword in _EMPTY:
        return "must not be empty"
    if template is None:
        return f"is not valid: {fallback[:200]}"
    if "{" not in template:
        return template
    listed = _format_types(limit) if keyword == "type" else _format_limit(limit)
    return template.format(limit=listed, got=_format_value(value), found=_format_found(value), size=_size(value))


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
    """Return the path with keys as strings: the validator gives a key that is all digits as a number."""
    keys: list[str | int] = []
    for part in path:
        keys.append(str(part) if isinstance(body, dict) else part)
        body = body[keys[-1]]
    return tuple(keys)


def _format_types(limit: Any) -> str:
    """Format the types of a schema: `string, array or null`."""
    names = sorted([limit] if isinstance(limit, str) else limit, key="null".__eq__)
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _format_limit(limit: Any) -> str:
    if isinstance(limit, list):
        return ", ".join(_format_limit(one) for one in limit if one is not None)
    return limit if isinstance(limit, str) else _format_value(limit)


def _format_found(value: Any) -> str:
    """Format a value as its type, followed by the value if that shows more."""
    shown, kind = _format_value(value), _type_of(value)
    return kind if shown == kind else f"{kind} {shown}"


def _format_value(value: Any) -> str:
    """Format a value as JSON, truncated; of an array or an object only the type."""
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
