"""The base of all parts of the configuration: frozen dataclasses.

The types of their fields say what a value must be. Only `from_values` reads them, with pydantic, which it loads: a
process that gets a configuration that is checked already needs neither the library nor its validators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, dataclass_transform

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ConfigModel"]

_adapters: dict[type[ConfigModel], TypeAdapter[Any]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class ConfigModel:
    """A part of the configuration: immutable, and without unknown keys. `schema` has more keywords of its JSON Schema.

    Each subclass becomes a frozen dataclass whose arguments need names. `dataclass` would generate and compile six
    methods for each of them, which took a twentieth of the start; here all share the same.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, schema: Mapping[str, Any] | None = None) -> None:
        cls.__pydantic_config__ = {"extra": "forbid", "json_schema_extra": schema or {}}
        text = cls.__doc__
        cls.__doc__ = text or cls.__name__  # else `dataclass` writes one, which takes long
        dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        cls.__doc__ = text

    def __init__(self, **values: Any) -> None:
        kind = type(self).__qualname__
        for one in _list_fields(type(self)):
            if one.name not in values and one.default is MISSING and one.default_factory is MISSING:
                raise TypeError(f"{kind} needs {one.name}")
            vars(self)[one.name] = values.pop(one.name) if one.name in values else _create_default(one)
        if values:
            raise TypeError(f"{kind} has no {', '.join(values)}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check values that depend on one another. Raises what `reject` raises."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(vars(self)[one.name] for one in _list_fields(type(self))))

    def __repr__(self) -> str:
        values = (f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({', '.join(values)})"

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


def _list_fields(model: type[ConfigModel]) -> tuple[Field[Any], ...]:
    return fields(cast(Any, model))


def _create_default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _find_adapter(model: type[ConfigModel]) -> TypeAdapter[Any]:
    if model not in _adapters:
        from pydantic import TypeAdapter

        _adapters[model] = TypeAdapter(model)
    return _adapters[model]
