"""The rule behind a check: its description, its function, and the schema of its argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import Outcome

__all__ = ["FindExcuse", "FindProblems", "Problems", "Rule", "shorten"]

Problems: TypeAlias = list[str]
FindProblems: TypeAlias = Callable[[Outcome, JsonValue], Problems]
FindExcuse: TypeAlias = Callable[[Outcome, JsonValue], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """`description` says what is true if there is no problem; `argument_schema` is the JSON Schema of the argument,
    None if the check takes none. `needs_model` is True if a model that does not do its part can break the check.
    `find_excuse` says why the model alone may have broken it, empty if it cannot have. No reference demands a check
    that `is_advice`. If `has_own_case` is True, the cases of one endpoint that only touch the rule warn: one server
    that breaks it would fail them all."""

    description: str
    find_problems: FindProblems
    argument_schema: JsonObject | None = None
    needs_model: bool = False
    find_excuse: FindExcuse | None = None
    is_advice: bool = False
    has_own_case: bool = False


def shorten(value: object, most: int = 120) -> str:
    """Return the repr of a value, cut after `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
