"""The type of the option `--profile`. Its values are the profiles of all schemas: only commands with the option list
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from dragoman.schemas import all_profiles

__all__ = ["Profile"]

if TYPE_CHECKING:
    Profile: TypeAlias = str
else:
    Profile = Literal[all_profiles()]
