"""The base of all parts of the configuration: frozen dataclasses.

The types of their fields say what a value must be. Only `from_values` reads them, with pydantic, which it loads: a
process that gets a configuration that is checked already needs neither the library nor its validators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ConfigModel"]

_adapters: dict[type[ConfigModel], TypeAdapter[Any]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class ConfigModel:
    """A part of the configuration: immutable, and without unknown keys. Each subclass becomes a dataclass; `schema` has
    further keywords of its JSON Schema."""

    __pydantic_config__: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, schema: Mapping[str, Any] | None = None) -> None:
        cls.__pydantic_config__ = {"extra": "forbid", "json_schema_extra": schema or {}}
        text = cls.__doc__
        cls.__doc__ = text or cls.__name__  # else `dataclass` writes one, which takes long
        dataclass(frozen=True, kw_only=True)(cls)
        cls.__doc__ = text

    @classmethod
    def from_values(cls, values: object, context: Mapping[str, Any] | None = None) -> Self:
        """Check values as a file has them. Raises pydantic.ValidationError with everything that is wrong."""
        made: Self = _find_adapter(cls).validate_python(values, context=context)
        return made

    @classmethod
    def describe_shape(cls) -> dict[str, Any]:
        """The JSON Schema of such values."""
        return _find_adapter(cls).json_schema()

    def list_values(self) -> dict[str, Any]:
        """The fields that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


def _find_adapter(model: type[ConfigModel]) -> TypeAdapter[Any]:
    if model not in _adapters:
        from pydantic import TypeAdapter

        _adapters[model] = TypeAdapter(model)
    return _adapters[model]
