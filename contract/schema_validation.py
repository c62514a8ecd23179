"""Validation of bodies against the schema files, with `jsonschema`. It shares no code with the proxy's validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from dragoman.schemas import SchemaNotFound, load

from .json_types import JsonValue

__all__ = ["SchemaFindings", "find_violations", "has_schema", "validate_body"]

_MOST_SHOWN = 5
_MOST_CHARACTERS = 240


def has_schema(name: str) -> bool:
    try:
        load(name)
    except SchemaNotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SchemaFindings:
    """Sentences with paths, at most six of each kind. `missing_nullable` are required keys that are missing but may be
    null: most readers treat both alike."""

    violations: list[str]
    missing_nullable: list[str]


def validate_body(name: str, profile: str, value: JsonValue) -> SchemaFindings:
    """Validate a value against the schema of that name."""
    validator = _validator(name, profile)
    errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.path])
    missing = [error for error in errors if _is_missing_nullable(validator, error)]
    return SchemaFindings(_describe_all([error for error in errors if error not in missing]), _describe_all(missing))


def find_violations(name: str, profile: str, value: JsonValue) -> list[str]:
    """Find the violations of the schema, without missing keys that may be null."""
    return validate_body(name, profile, value).violations


def _is_missing_nullable(validator: Draft202012Validator, error: ValidationError) -> bool:
    if error.validator != "required" or not isinstance(error.schema, dict):
        return False
    shapes = error.schema.get("properties", {})
    shape = next((shapes[key] for key in error.schema["required"] if key in shapes and _names_key(error, key)), None)
    return shape is not None and bool(validator.evolve(schema=shape).is_valid(None))


def _names_key(error: ValidationError, key: str) -> bool:
    return error.message == f"{key!r} is a required property"


def _describe_all(errors: Sequence[ValidationError]) -> list[str]:
    shown = [_describe(error) for error in errors[:_MOST_SHOWN]]
    return shown if len(errors) <= _MOST_SHOWN else [*shown, f"and {len(errors) - _MOST_SHOWN} more"]


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
