"""What the types of fields say about values, and texts that are secret. pydantic asks them for its own schemas when it
reads a configuration; nothing here loads it before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core.core_schema import CoreSchema

__all__ = ["After", "Before", "Bounds", "SecretText", "TextPattern", "reject"]


def reject(code: Any, message: str, expected: str = "", hint: str = "") -> NoReturn:
    """Refuse a value, from within a rule."""
    from pydantic_core import PydanticCustomError

    raise PydanticCustomError(code, "{message}", {"message": message, "expected": expected, "hint": hint})


class Bounds:
    """Limits of a number or of a length, by pydantic's names: ge, gt, le, min_length, allow_inf_nan."""

    def __init__(self, **limits: Any) -> None:
        self._limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return {**handler(source), **self._limits}


@dataclass(frozen=True, slots=True)
class Before:
    """A function that gets what the file has, and returns what is checked."""

    convert: Callable[[object, ValidationInfo], object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core.core_schema import with_info_before_validator_function

        return with_info_before_validator_function(self.convert, handler(source))


@dataclass(frozen=True, slots=True)
class After:
    """A function that gets what has been checked, and returns the value or rejects it."""

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.check, handler(source))


class TextPattern:
    """The JSON Schema of a value that is a text in the file: a pattern, and the unit of the number that it becomes."""

    def __init__(self, pattern: str, unit: str = "") -> None:
        self._schema = {"type": "string", "pattern": pattern} | ({"x-unit": unit} if unit else {})

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**self._schema}


class SecretText:
    """A text that no message shows. It is no dataclass, so that nothing that writes those can write it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***" if self._text else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        made = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.no_info_before_validator_function(_reveal, made)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "writeOnly": True, "format": "password"}


def _reveal(value: object) -> object:
    return value.get_secret_value() if isinstance(value, SecretText) else value
