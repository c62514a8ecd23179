"""Groups of command-line options: a dataclass whose fields are options, as one parameter of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature
from typing import Any, get_type_hints

__all__ = ["expand_groups"]


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function for typer that takes the options of all groups, and calls the command with the groups.

    Every parameter of the command must be annotated with a dataclass.
    """
    hints = get_type_hints(command)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = [parameter for group in groups.values() for parameter in _list_parameters(group)]

    def call(**values: Any) -> None:
        command(
            **{
                name: group(**{field.name: values[field.name] for field in fields(group)})
                for name, group in groups.items()
            }
        )

    call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _list_parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=getattr(group, field.name, Parameter.empty),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
