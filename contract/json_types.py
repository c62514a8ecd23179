"""Type aliases for JSON values."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["JsonObject", "JsonValue"]

JsonValue: TypeAlias = Any
"""Any JSON value; its shape is checked at run time. An absent value is `json_path.ABSENT`."""

JsonObject: TypeAlias = dict[str, JsonValue]
