"""Validation of bodies against the schema files, with `jsonschema`. It shares no code with the proxy's validation."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from dragoman.schemas import SchemaNotFound, load

from .json_types import JsonValue

__all__ = ["SchemaFindings", "find_violations", "has_schema", "validate_body"]

_MOST_SHOWN = 5
_MOST_CHARACTERS = 240
_MOST_REMEMBERED = 2048


def has_schema(name: str) -> bool:
    try:
        load(name)
    except SchemaNotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SchemaFindings:
    """Sentences with paths, at most six of each kind. `null_keys` are required keys that are missing but may be null,
    and optional keys that are null but may not be: most readers treat null and absent alike."""

    violations: tuple[str, ...]
    null_keys: tuple[str, ...]


def validate_body(name: str, profile: str, value: JsonValue, ignored: Collection[str] = ()) -> SchemaFindings:
    """Validate a value against the schema of that name. The absence and the type of keys in `ignored` do not count."""
    return _validate_text(name, profile, json.dumps(value), frozenset(ignored))


@lru_cache(maxsize=_MOST_REMEMBERED)
def _validate_text(name: str, profile: str, text: str, ignored: frozenset[str]) -> SchemaFindings:
    """Validate JSON text. Servers repeat themselves, in the events of streams above all."""
    validator, value = _validator(name, profile), json.loads(text)
    errors = _list_errors(validator, value)
    nulls = [error for error in errors if error.instance is None and _ends_with_key(error)]
    if nulls:
        errors = _list_errors(validator, _remove(value, [list(error.absolute_path) for error in nulls]))
    missing = [error for error in errors if _is_missing_nullable(validator, error)]
    violations = [error for error in errors if error not in missing and not _is_about(error, ignored)]
    return SchemaFindings(_describe_all(violations), _describe_all([*missing, *nulls]))


def find_violations(name: str, profile: str, value: JsonValue, ignored: Collection[str] = ()) -> list[str]:
    """Find the violations of the schema, without keys that are null or missing where the other is allowed."""
    return list(validate_body(name, profile, value, ignored).violations)


def _list_errors(validator: Draft202012Validator, value: JsonValue) -> list[ValidationError]:
    return sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])


def _ends_with_key(error: ValidationError) -> bool:
    return bool(error.absolute_path) and isinstance(error.absolute_path[-1], str)


def _remove(value: JsonValue, paths: Sequence[list[str | int]]) -> JsonValue:
    """Return a copy without the keys at these paths."""
    here = {path[0] for path in paths if len(path) == 1}
    deeper = {path[0] for path in paths if len(path) > 1}

    def descend(part: str | int, item: JsonValue) -> JsonValue:
        return (
            _remove(item, [path[1:] for path in paths if path[0] == part and len(path) > 1]) if part in deeper else item
        )

    if isinstance(value, dict):
        return {key: descend(key, item) for key, item in value.items() if key not in here}
    return [descend(position, item) for position, item in enumerate(value)] if isinstance(value, list) else value


def _is_about(error: ValidationError, keys: Collection[str]) -> bool:
    if error.validator == "type":
        return bool(error.absolute_path) and error.absolute_path[-1] in keys
    return error.validator == "required" and any(_names_key(error, key) for key in keys)


def _is_missing_nullable(validator: Draft202012Validator, error: ValidationError) -> bool:
    if error.validator != "required" or not isinstance(error.schema, dict):
        return False
    shapes = error.schema.get("properties", {})
    shape = next((shapes[key] for key in error.schema["required"] if key in shapes and _names_key(error, key)), None)
    return shape is not None and bool(validator.evolve(schema=shape).is_valid(None))


def _names_key(error: ValidationError, key: str) -> bool:
    return error.message == f"{key!r} is a required property"


def _describe_all(errors: Sequence[ValidationError]) -> tuple[str, ...]:
    shown = tuple(_describe(error) for error in errors[:_MOST_SHOWN])
    return shown if len(errors) <= _MOST_SHOWN else (*shown, f"and {len(errors) - _MOST_SHOWN} more")


@cache
def _validator(name: str, profile: str) -> Draft202012Validator:
    return Draft202012Validator(load(name, profile), registry=Registry())


def _describe(error: ValidationError) -> str:
    message = error.schema.get("x-message") if isinstance(error.schema, dict) else None
    message = message or error.message
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[:_MOST_CHARACTERS]}…"
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    return f"{path}: {message}" if path else message
