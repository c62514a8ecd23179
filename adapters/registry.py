"""All dialects. To add one, add its name to `NAMES` and its folder next to this file; all else follows from these.

A dialect's folder is a package with a `DIALECT`, its fake provider (`fake.json`) and a sample of each protocol
(`samples/<protocol>.json`); its wire shapes are in `schemas/<name>/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dialect import Dialect

__all__ = ["NAMES", "dialects"]

NAMES = (
    "openai",
    "databricks",
    "azure",
    "mindie",
    "anthropic",
)

dialects: Mapping[str, Dialect]
"""The dialects by name, in the order of `NAMES`. Loaded and checked on first use: the command line needs only names."""


def __getattr__(name: str) -> Any:
    """Load `dialects` on first use. Raises IncompleteDialect if one of them lacks something."""
    if name != "dialects":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()["dialects"] = {one: _load(one) for one in NAMES}
    return found


def _load(name: str) -> Dialect:
    from .dialect_check import require_complete

    dialect: Dialect = import_module(f".{name}", __package__).DIALECT
    require_complete(name, dialect)
    return dialect
