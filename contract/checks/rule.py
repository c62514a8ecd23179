"""What a check is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragoman.contract.model import Json
from dragoman.contract.outcome import Outcome

__all__ = ["Problems", "Rule", "short"]

Problems: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """`about` says what holds where it finds no problem; `takes` is the JSON Schema of its argument, None for none."""

    about: str
    find: Callable[[Outcome, Any], Problems]
    takes: Json | None = None


def short(value: Any, most: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
