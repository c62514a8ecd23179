"""Every dialect, by name."""

from __future__ import annotations

from collections.abc import Mapping

from .azure import AZURE
from .databricks import DATABRICKS
from .dialect import Dialect
from .mindie import MINDIE
from .openai import OPENAI

__all__ = ["dialects"]

dialects: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (OPENAI, DATABRICKS, AZURE, MINDIE)}
