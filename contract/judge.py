"""Judging bodies by the schema files, with `jsonschema`: nothing here is shared with the proxy's own validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from dragoman.schemas import SchemaNotFound, load

__all__ = ["Findings", "has_schema", "judged", "violations"]

_MOST = 5
_LONGEST = 240


def has_schema(name: str) -> bool:
    try:
        load(name)
    except SchemaNotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Findings:
    """A few sentences of each, with their paths. `unsaid` are keys that the schema demands, but would take as null:
    most readers take them as read."""

    violations: list[str]
    unsaid: list[str]


def judged(name: str, profile: str, value: Any) -> Findings:
    """What the schema does not allow in that value."""
    validator = _validator(name, profile)
    errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.path])
    unsaid = [error for error in errors if _may_be_null(validator, error)]
    return Findings(_sentences([error for error in errors if error not in unsaid]), _sentences(unsaid))


def violations(name: str, profile: str, value: Any) -> list[str]:
    """What is wrong, but for keys that could as well be null."""
    return judged(name, profile, value).violations


def _may_be_null(validator: Draft202012Validator, error: ValidationError) -> bool:
    if error.validator != "required" or not isinstance(error.schema, dict):
        return False
    shapes = error.schema.get("properties", {})
    shape = next((shapes[key] for key in error.schema["required"] if key in shapes and _is_of(error, key)), None)
    return shape is not None and bool(validator.evolve(schema=shape).is_valid(None))


def _is_of(error: ValidationError, key: str) -> bool:
    return error.message == f"{key!r} is a required property"


def _sentences(errors: Sequence[ValidationError]) -> list[str]:
    shown = [_sentence(error) for error in errors[:_MOST]]
    return shown if len(errors) <= _MOST else [*shown, f"and {len(errors) - _MOST} more"]


@cache
def _validator(name: str, profile: str) -> Draft202012Validator:
    return Draft202012Validator(load(name, profile), registry=Registry())


def _sentence(error: ValidationError) -> str:
    said = error.schema.get("x-message") if isinstance(error.schema, dict) else None
    message = said or error.message
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}…"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    return f"{place}: {message}" if place else message
