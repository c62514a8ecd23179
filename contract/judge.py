"""Judging bodies by the schema files, with `jsonschema`: nothing here is shared with the proxy's own validation."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from dragoman.schemas import SchemaNotFound, load

__all__ = ["has_schema", "violations"]

_MOST = 5
_LONGEST = 240


def has_schema(name: str) -> bool:
    try:
        load(name)
    except SchemaNotFound:
        return False
    return True


def violations(name: str, profile: str, value: Any) -> list[str]:
    """What the schema does not allow, most telling first: a few sentences, each with its path."""
    errors = sorted(_validator(name, profile).iter_errors(value), key=lambda error: [str(part) for part in error.path])
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
